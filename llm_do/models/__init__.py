"""Turn model names into PydanticAI models: a provider's, the local one, a script, or one that the project registers.

Importing this package is cheap: each name below is loaded on first access.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_do.models.catalog import ModelInfo, available_models, is_local_available
    from llm_do.models.choice import Choice, choose_model
    from llm_do.models.pool import CONNECTION_SETTINGS, ModelPool, resolve_model
    from llm_do.models.providers.factories import ModelFactory, register_model_factory
    from llm_do.models.providers.failures import explain_failure, is_transient
    from llm_do.models.providers.model_names import ModelOverride, check_model_name, parse_override

__all__ = [
    "CONNECTION_SETTINGS",
    "Choice",
    "ModelFactory",
    "ModelInfo",
    "ModelOverride",
    "ModelPool",
    "available_models",
    "check_model_name",
    "choose_model",
    "explain_failure",
    "is_local_available",
    "is_transient",
    "parse_override",
    "register_model_factory",
    "resolve_model",
]

_HOMES = {
    "CONNECTION_SETTINGS": "pool",
    "Choice": "choice",
    "ModelFactory": "providers.factories",
    "ModelInfo": "catalog",
    "ModelOverride": "providers.model_names",
    "ModelPool": "pool",
    "available_models": "catalog",
    "check_model_name": "providers.model_names",
    "choose_model": "choice",
    "explain_failure": "providers.failures",
    "is_transient": "providers.failures",
    "is_local_available": "catalog",
    "parse_override": "providers.model_names",
    "register_model_factory": "providers.factories",
    "resolve_model": "pool",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
