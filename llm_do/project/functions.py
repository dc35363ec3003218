"""Functions of the form `(input, ctx)`, which are entries and steps of flows: how to recognize them, and their input.

And functions with a `RunContext`, which are tools: which `deps` they expect of it. The runtime calls them.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel

from llm_do.project.inputs import PromptInput

__all__ = ["context_deps", "input_annotation", "input_model_of", "takes_context"]


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
    # Only this parameter's: the other one names CallContext, which is often imported for type checking only.
    annotation = _evaluated(annotation, function)
    return PromptInput if isinstance(annotation, str) else annotation


def input_model_of(function: Callable[..., Any]) -> type[BaseModel]:
    """Return the input model of such a function: its annotation, or `PromptInput`."""
    annotation = input_annotation(function)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else PromptInput


def _name_of(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return text.rpartition(".")[2]


def context_deps(function: object) -> Literal["call", "own"] | None:
    """Return which `deps` a tool's `RunContext` has, by its annotation: the `CallContext` or others; None if open.

    Example:
        >>> from llm_do import CallContext
        >>> from pydantic_ai import RunContext
        >>> def ours(ctx: RunContext[CallContext]): ...
        >>> def theirs(ctx: "RunContext[Database]", key: str): ...
        >>> def either(ctx: RunContext): ...
        >>> context_deps(ours), context_deps(theirs), context_deps(either)
        ('call', 'own', None)
    """
    try:
        parameters = list(inspect.signature(cast("Callable[..., Any]", function)).parameters.values())
    except (TypeError, ValueError):
        return None
    named = [each for each in parameters if each.name == "ctx"]
    if not (named or parameters):
        return None
    annotation = _evaluated((named or parameters)[0].annotation, function)
    if isinstance(annotation, str):
        found = re.search(r"\[(.*)\]\s*$", annotation, re.DOTALL)
        name = _name_of((found[1] if found is not None else annotation).strip())
    else:
        name = _name_of((get_args(annotation) or (annotation,))[0])
    if name in _WITH_CALL:
        return "call"
    return None if name in _OPEN else "own"


_WITH_CALL = frozenset({"CallContext", "ToolkitContext"})
_OPEN = frozenset({"", "Any", "RunContext", "_empty"})


def _evaluated(annotation: Any, function: object) -> Any:
    """An annotation that may be quoted; the text if it can't be evaluated.

    Under `from __future__ import annotations`, a quoted one has to be evaluated twice.
    """
    plain: Any = function
    while isinstance(plain, functools.partial):
        plain = cast("functools.partial[Any]", plain).func
    plain = inspect.unwrap(plain)
    names = getattr(plain if hasattr(plain, "__globals__") else getattr(plain, "__func__", None), "__globals__", {})
    for _ in range(2):
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, names)  # noqa: S307 - the project's code
            except Exception:  # noqa: BLE001 - an annotation may be any expression
                return annotation
    return annotation
