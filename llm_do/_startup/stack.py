"""Room on the interpreter's stack for a whole process, so that calls don't allocate and free memory."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_stack_room"]

_WORDS = 1 << 15
"""Reserved machine words, enough for about a thousand nested calls; deeper calls get more as usual."""


def with_stack_room(function: Callable[[], None]) -> Callable[[], None]:
    """Return the same function in a frame with room for the frames of whatever it calls.

    CPython keeps frames in chunks of 16 KB and returns a chunk to the system when its last frame returns. A call that
    happens to begin at the end of a chunk therefore maps and unmaps memory, and in a loop does so again and again:
    thousands of page faults while a run imports its modules. A frame that asks for more than a chunk gets a larger one
    (`push_chunk` in CPython's `Python/pystate.c`), and what it calls fits into the rest.

    Example:
        >>> with_stack_room(lambda: print("the same"))()
        the same
    """
    code = function.__code__
    return FunctionType(
        code.replace(co_stacksize=code.co_stacksize + _WORDS), function.__globals__, closure=function.__closure__
    )
