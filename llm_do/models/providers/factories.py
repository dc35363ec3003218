"""Model factories: the prefixes that a project's Python files register for its own models."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from llm_do._entry_points import Published, describe, find_published, import_fault
from llm_do.errors import ModelUnavailableError, UsageError
from llm_do.models.providers.model_names import BUILT_IN, LEFT_OUT, PROVIDERS, RENAMED

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = [
    "ModelFactory",
    "factory_for",
    "is_registered",
    "load_fault",
    "register_model_factory",
    "registered_prefixes",
]

ModelFactory: TypeAlias = "Callable[[str], Model]"
"""A function that creates a model from the part of its name after the colon."""

_factories: dict[str, ModelFactory] = {}
_published: dict[str, ModelFactory] = {}
"""Those of installed packages that have been imported."""


def register_model_factory(prefix: str, factory: ModelFactory) -> None:
    """Make `prefix:NAME` the name of the model that `factory(NAME)` returns; registering a prefix again replaces it.

    Args:
        prefix: Letters, digits, `.`, `_` and `-`; not a prefix of PydanticAI or llm-do.
        factory: Called once per name and event loop; returns a PydanticAI model.

    Raises:
        UsageError: The prefix is taken or malformed.

    Example:
        >>> from pydantic_ai.models.test import TestModel
        >>> register_model_factory("echo", lambda name: TestModel(custom_output_text=name))
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", prefix):
        raise UsageError(f"{prefix!r} can't be the prefix of a model's name", hint="use letters, digits, '.', '_', '-'")
    if prefix in PROVIDERS or prefix in BUILT_IN or prefix in RENAMED or prefix in LEFT_OUT:
        raise UsageError(f"the prefix {prefix!r} is already taken", hint="register another prefix")
    _factories[prefix] = factory


def factory_for(prefix: str) -> ModelFactory | None:
    """Return the factory of a prefix, registered or published by an installed package, which is then imported.

    Raises:
        ModelUnavailableError: What a package publishes can't be used.
    """
    if prefix in _factories or not prefix or prefix in PROVIDERS or prefix in BUILT_IN:
        return _factories.get(prefix)
    if prefix not in _published:
        found = find_published("models", prefix)
        if not found:
            return None
        what = f"the models `{prefix}:`"
        published, *others = found
        if others:
            raise ModelUnavailableError(
                f"{what} are published by {' and '.join(map(str, found))}", hint="uninstall all but one of them"
            )
        reason = load_fault(published)
        if reason is not None:
            raise ModelUnavailableError(
                f"{what} of {published} can't be used: {reason}", hint=f"update or uninstall {published.distribution}"
            )
    return _published[prefix]


def load_fault(published: Published) -> str | None:
    """Import a factory of models that a package publishes; return what is wrong with it."""
    if published.name in _published:
        return None
    try:
        value = published.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a package's code may raise anything, also SystemExit
        return import_fault(error)
    if not callable(value) or isinstance(value, type):
        return f"`{published.target}` is {describe(value)}: publish a function from a name to a model"
    _published[published.name] = cast("ModelFactory", value)
    return None


def is_registered(prefix: str) -> bool:
    """Whether a factory is registered for a prefix, which comes before those of installed packages."""
    return prefix in _factories


def registered_prefixes() -> tuple[str, ...]:
    """Return the registered prefixes, sorted."""
    return tuple(sorted(_factories))
