"""Room on the interpreter's stack for a whole process, so that calls don't make and drop memory."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_stack_room"]

_WORDS = 1 << 15
"""Machine words that are reserved, about what a thousand calls inside each other take; deeper calls get more."""


def with_stack_room(function: Callable[[], None]) -> Callable[[], None]:
    """A function that does the same, in a frame with room for the frames of what it calls.

    CPython keeps frames in chunks of 16 KB, and gives a chunk back to the system when the last frame in it returns. So
    a call that happens to begin at the end of a chunk maps and unmaps memory, and in a loop does it again and again:
    eight thousand times while a run imports its modules, a twelfth of its processor time. A frame that asks for more
    than a chunk gets a larger one (`push_chunk` in CPython's `Python/pystate.c`), and what it calls fits into the rest.

    Example:
        >>> with_stack_room(lambda: print("the same"))()
        the same
    """
    code = function.__code__
    return FunctionType(
        code.replace(co_stacksize=code.co_stacksize + _WORDS), function.__globals__, closure=function.__closure__
    )
