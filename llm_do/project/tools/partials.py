"""A `functools.partial` as a function: its name and docstring, and no parameter that is bound already."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from typing_extensions import get_type_hints

__all__ = ["function_of"]


def function_of(item: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a `partial` is; another callable as it is.

    What the partial binds is no parameter: as a parameter with a default, a model could choose another value.

    Example:
        >>> def scale(value: float, factor: float) -> float:
        ...     "Scale a value."
        ...     return value * factor
        >>> double = function_of(functools.partial(scale, factor=2))
        >>> double.__name__, str(inspect.signature(double)), double(value=4)
        ('scale', '(value: float) -> float', 8)
    """
    if not isinstance(item, functools.partial):
        return item
    bound = cast("functools.partial[Any]", item)
    inner: Callable[..., Any] = bound.func
    hints = get_type_hints(inspect.unwrap(inner), include_extras=True)
    signature = inspect.signature(bound)
    parameters = [
        each.replace(annotation=hints.get(name, each.annotation))
        for name, each in signature.parameters.items()
        if name not in bound.keywords
    ]

    async def wait(*args: Any, **named: Any) -> Any:
        return await bound(*args, **named)

    def work(*args: Any, **named: Any) -> Any:
        return bound(*args, **named)

    made: Any = wait if inspect.iscoroutinefunction(inner) else work
    functools.update_wrapper(made, inner, updated=())
    del made.__wrapped__  # whoever looks at the signature would look through it
    made.__signature__ = signature.replace(parameters=parameters, return_annotation=hints.get("return", Any))
    made.__annotations__ = {
        name: hints[name] for name in (*(each.name for each in parameters), "return") if name in hints
    }
    return made
