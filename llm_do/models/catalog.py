"""The available models, for `llm-do models`; listing them imports no provider and uses no network."""

from __future__ import annotations

import os
from collections.abc import Mapping

from llm_do._entry_points import find_published
from llm_do._extras import has_extra, install_command
from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError
from llm_do.models.aliases import Aliases, known_aliases, resolve_aliases
from llm_do.models.builtin import weights
from llm_do.models.provider_packages import missing_package
from llm_do.models.providers.factories import registered_prefixes
from llm_do.models.providers.model_names import PROVIDERS, ProviderInfo, split_name

__all__ = ["ModelInfo", "available_models", "declared_aliases", "is_local_available"]

OTHER_CREDENTIALS = {
    "bedrock": "AWS credentials",
    "bedrock-mantle": "AWS credentials",
    "github-copilot": "a GitHub Copilot login",
    "google-cloud": "Google Cloud credentials",
    "openai-chatgpt": "a ChatGPT login",
    "openai-codex": "a ChatGPT login",
}
"""The credentials of providers that don't use an API key from the environment."""


@frozen
class ModelInfo:
    """One kind of model, and whether it can be used."""

    name: str
    """The form of its names, such as `openai:NAME` or `local`."""

    usable: bool
    note: str = ""
    """What is missing, or a remark on a usable model."""


def is_local_available() -> bool:
    """Whether `local` can be used: it has weights and the package that runs them, or names a server."""
    return _local(os.environ).usable


def available_models(environ: Mapping[str, str] | None = None) -> list[ModelInfo]:
    """List the kinds of models, with the reason for each that can't be used.

    Example:
        >>> [info.usable for info in available_models({"OPENAI_API_KEY": "k"}) if info.name == "openai:NAME"]
        [True]
    """
    environ = os.environ if environ is None else environ
    providers = [_provider(prefix, info, environ) for prefix, info in PROVIDERS.items()]
    return [
        _local(environ),
        ModelInfo("local:PATH.gguf", *_runtime()),
        ModelInfo("local:URL#NAME", usable=True),
        ModelInfo("script:PATH", usable=True),
        ModelInfo("test", usable=True),
        *(ModelInfo(f"{prefix}:NAME", usable=True) for prefix in registered_prefixes()),
        *_published(),
        *providers,
    ]


def declared_aliases(declared: Aliases, environ: Mapping[str, str] | None = None) -> list[ModelInfo]:
    """List a project's aliases and the person's own; one can be used if one of its models can be.

    Example:
        >>> [(info.name, info.note) for info in declared_aliases({"fast": "test"}) if info.name == "fast"]
        [('fast', 'test, by `models` of project.json')]
    """
    available = available_models(environ)
    usable = {info.name.partition(":")[0] for info in available if info.usable}
    known = {info.name.partition(":")[0] for info in available}
    found: list[ModelInfo] = []
    for name in sorted(known_aliases(declared)):
        home = "by `models` of project.json" if name in declared else "by your config.toml"
        try:
            models = resolve_aliases(name, declared)
        except ModelUnavailableError as error:
            found.append(ModelInfo(name, usable=False, note=error.message))
            continue
        ready = any((split_name(each)[0] or each) in usable for each in models)
        note = f"{', '.join(models)}, {home}"
        if not ready:
            unknown = all((split_name(each)[0] or each) not in known for each in models)
            note += (
                ", if a Python file of the project registers it"
                if unknown
                else ", which `llm-do models --all` explains"
            )
        found.append(ModelInfo(name, ready, note))
    return found


def _published() -> list[ModelInfo]:
    """The models of installed packages, by prefixes that nothing else has; the packages aren't imported."""
    found = [each for each in find_published("models") if each.name not in (*PROVIDERS, *registered_prefixes())]
    return [ModelInfo(f"{each.name}:NAME", usable=True, note=f"of {each}") for each in found]


def _runtime() -> tuple[bool, str]:
    installed = has_extra("local")
    return installed, "" if installed else f"run `{install_command('local')}`"


def _local(environ: Mapping[str, str]) -> ModelInfo:
    chosen = environ.get("LLM_DO_LOCAL_MODEL") or ""
    if "://" in chosen:
        return ModelInfo("local", usable=True, note=f"LLM_DO_LOCAL_MODEL names {chosen}")
    installed, instruction = _runtime()
    reasons = [] if installed else [instruction]
    if weights.find_weights() is None:
        reasons.append(f"LLM_DO_LOCAL_MODEL names no file: {chosen}" if chosen else "run `llm-do models pull`")
    return ModelInfo("local", not reasons, "; ".join(reasons))


def _provider(prefix: str, info: ProviderInfo, environ: Mapping[str, str]) -> ModelInfo:
    name = f"{prefix}:NAME"
    if (missing := missing_package(prefix)) is not None:
        return ModelInfo(name, usable=False, note=missing.message)
    moved = bool(info.base_url and environ.get(info.base_url))
    unset = [each for each in info.needs if not environ.get(each)]
    if info.keys and not info.keyless and not moved and not any(environ.get(key) for key in info.keys):
        unset.insert(0, " or ".join(info.keys))
    if unset:
        return ModelInfo(name, usable=False, note=f"{', '.join(unset)} not set")
    return ModelInfo(name, usable=True, note=f"with {OTHER_CREDENTIALS[prefix]}" if prefix in OTHER_CREDENTIALS else "")
