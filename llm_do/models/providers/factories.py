"""Model factories: the prefixes that a project's Python files register for its own models."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from llm_do.errors import UsageError
from llm_do.models.providers.model_names import BUILT_IN, LEFT_OUT, PROVIDERS, RENAMED

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["ModelFactory", "factory_for", "register_model_factory", "registered_prefixes"]

ModelFactory: TypeAlias = "Callable[[str], Model]"
"""A function that creates a model from the part of its name after the colon."""

_factories: dict[str, ModelFactory] = {}


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
    """Return the factory registered for a prefix, if there is one."""
    return _factories.get(prefix)


def registered_prefixes() -> tuple[str, ...]:
    """Return the registered prefixes, sorted."""
    return tuple(sorted(_factories))
