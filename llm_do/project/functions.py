"""Functions of the form `(input, ctx)`, which are entries and steps of flows: how to recognize them, and their input.

The runtime calls them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from llm_do.project.inputs import PromptInput

__all__ = ["input_annotation", "input_model_of", "takes_context"]


def takes_context(function: object) -> bool:
    """Check whether a function takes its input and the `CallContext`, unlike a tool, which takes arguments.

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
    """Return the annotation of such a function's input; `PromptInput` if it has none.

    Example:
        >>> def step(input: "str", ctx): ...
        >>> input_annotation(step)
        <class 'str'>
    """
    first = next(iter(inspect.signature(function).parameters.values()))
    annotation = first.annotation
    if annotation in (first.empty, Any):
        return PromptInput
    # Only this parameter's: the other one names CallContext, which is often imported for type checking only. Under
    # `from __future__ import annotations`, a quoted annotation has to be evaluated twice.
    for _ in range(2):
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, getattr(function, "__globals__", {}))  # noqa: S307 - the project's code
            except Exception:  # noqa: BLE001 - an annotation may be any expression
                return PromptInput
    return annotation


def input_model_of(function: Callable[..., Any]) -> type[BaseModel]:
    """Return the input model of such a function: its annotation, or `PromptInput`."""
    annotation = input_annotation(function)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else PromptInput


def _name_of(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2]
