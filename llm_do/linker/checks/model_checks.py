"""Checks of the names of models, and of the manifest's aliases for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from llm_do._entry_points import find_published
from llm_do.diagnostics.codes import environment
from llm_do.diagnostics.diagnostic import Location
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.published import may_import, single
from llm_do.linker.python.python_files import run_user_code

if TYPE_CHECKING:
    from llm_do.linker.sources.project_files import ProjectFiles

__all__ = ["check_aliases", "check_model"]

_MODEL = re.compile(r"[^\s:]+(:[^\s:].*)?")


def check_aliases(files: ProjectFiles, names: Names) -> None:
    """Check the manifest's aliases: what they stand for, their names, and that none leads back to itself."""
    from llm_do.models.aliases import find_cycle
    from llm_do.models.user_config import is_reserved

    declared = files.manifest.models if files.manifest is not None else {}
    for name, models in declared.items():
        place = files.key_place("models", name)
        if is_reserved(name):
            names.report(environment.alias_of_provider(name), place)
        cycle = find_cycle(name, names.aliases)
        if cycle is not None:
            names.report(environment.circular_alias(cycle), place)
        if isinstance(models, str):
            check_model(models, names, files.place("models", name))
            continue
        for index, model in enumerate(models):
            check_model(model, names, files.place("models", name, index))


def check_model(model: str, names: Names, place: Location) -> None:
    """Check a model's name, its provider, and that its price is known if the project has a budget in dollars.

    Only a request shows whether the model exists.
    """
    if not _MODEL.fullmatch(model) or model != model.strip() or not model.isprintable():
        names.report(environment.malformed_model(model), place)
        return
    from llm_do.models.providers.factories import registered_prefixes
    from llm_do.models.providers.model_names import find_name_fault

    registered = registered_prefixes()
    if model in names.aliases:
        for name in names.aliases[model] if names.dollars else ():
            if name not in names.aliases and find_name_fault(name, registered) is None:
                _check_price(name, names, place)
        return
    fault = find_name_fault(model, registered, names.aliases)
    if fault is None:
        _check_package(model, names, place)
        if not _is_published(model, names, place) and names.dollars and model.partition(":")[0] not in registered:
            _check_price(model, names, place)
        return
    if fault.may_register and (names.broken.python or names.broken.anything):
        return
    problem = environment.unknown_provider if fault.may_register else environment.incomplete_model
    names.report(problem(model, fault.problem, fault.hint), place)


def _is_published(model: str, names: Names, place: Location) -> bool:
    """Whether an installed package publishes a model, which is imported in a folder that is open; report its faults."""
    from llm_do.models.providers.factories import is_registered, load_fault
    from llm_do.models.providers.model_names import BUILT_IN, PROVIDERS, split_name

    prefix = split_name(model)[0]
    if prefix in PROVIDERS or prefix in BUILT_IN or is_registered(prefix):
        return False
    found = find_published("models", prefix)
    what = f"the model `{model}`"
    published = single(what, found, place, names) if found else None
    if published is None:
        return bool(found)
    names.packages[published.distribution] = published.version
    if not may_import(names):
        names.unread_packages.append(f"the models `{prefix}:` of {published}")
        return True
    with run_user_code():
        reason = load_fault(published)
    if reason is not None:
        names.report(environment.published_unusable(what, str(published), reason), place)
    return True


def _check_package(model: str, names: Names, place: Location) -> None:
    """Report a model whose provider needs a package that isn't installed."""
    from llm_do.models.provider_packages import missing_for_model

    missing = missing_for_model(model)
    if missing is not None:
        names.report(environment.missing_package(*missing), place)


def _check_price(model: str, names: Names, place: Location) -> None:
    """Report a model without a known price, except a registered one, whose responses may contain the cost."""
    from llm_do.models.providers.known_prices import price_known

    if not price_known(model):
        names.report(environment.unknown_price(model), place)
