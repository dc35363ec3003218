"""Functions of the form `(input, ctx)`: entries and steps of flows. How to tell one from a tool, and what it takes.

Calling one is the runtime's business.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from llm_do.project.inputs import PromptInput

__all__ = ["input_annotation", "input_model_of", "takes_context"]


def takes_context(function: object) -> bool:
    """Whether a function is called with its input and the `CallContext`, rather than with arguments as a tool is.

    Example:
        >>> def step(input, ctx): ...
        >>> def tool(text: str, ctx: int): ...
        >>> takes_context(step), takes_context(tool), takes_context("no function")
        (True, False, False)
    """
    if not inspect.isroutine(function):
        return False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if len(parameters) != 2 or any(
        item.kind not in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD) for item in parameters
    ):
        return False
    second = parameters[1]
    if second.annotation is second.empty:
        return second.name == "ctx"
    return _name_of(second.annotation) == "CallContext"


def input_annotation(function: Callable[..., Any]) -> Any:
    """What such a function says its input is.

    Example:
        >>> def step(input: "str", ctx): ...
        >>> input_annotation(step)
        <class 'str'>
    """
    first = next(iter(inspect.signature(function).parameters.values()))
    annotation = first.annotation
    if annotation in (first.empty, Any):
        return PromptInput
    # Only this one: the other names CallContext, which many import for the type checker alone. Text in quotes under
    # `from __future__ import annotations` is text twice.
    for _ in range(2):
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, getattr(function, "__globals__", {}))  # noqa: S307 - the project's code
            except Exception:  # noqa: BLE001 - an annotation may be any expression
                return PromptInput
    return annotation


def input_model_of(function: Callable[..., Any]) -> type[BaseModel]:
    """The input model of such a function: the one it is annotated with, else `PromptInput`."""
    annotation = input_annotation(function)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else PromptInput


def _name_of(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2]
