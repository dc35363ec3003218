"""Models of a project's own: the prefixes that its Python files register. Building the rest is `pool`'s business."""

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
"""Makes a model from what follows the prefix and its colon."""

_factories: dict[str, ModelFactory] = {}


def register_model_factory(prefix: str, factory: ModelFactory) -> None:
    """Let `prefix:NAME` name the models that `factory(NAME)` makes; registering a prefix again replaces it.

    Args:
        prefix: Letters, digits, `.`, `_` and `-`; none that PydanticAI or llm-do has.
        factory: Called once per name and event loop; returns a PydanticAI model.

    Raises:
        UsageError: The prefix is taken or not well formed.

    Example:
        >>> from pydantic_ai.models.test import TestModel
        >>> register_model_factory("echo", lambda name: TestModel(custom_output_text=name))
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", prefix):
        raise UsageError(f"{prefix!r} can't be the prefix of a model's name", hint="use letters, digits, '.', '_', '-'")
    if prefix in PROVIDERS or prefix in BUILT_IN or prefix in RENAMED or prefix in LEFT_OUT:
        raise UsageError(f"the prefix {prefix!r} belongs to a provider already", hint="register another prefix")
    _factories[prefix] = factory


def factory_for(prefix: str) -> ModelFactory | None:
    """The factory registered for `prefix`, if any."""
    return _factories.get(prefix)


def registered_prefixes() -> tuple[str, ...]:
    """The prefixes registered so far, sorted."""
    return tuple(sorted(_factories))
