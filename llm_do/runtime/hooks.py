"""The seven points of an agent's life at which a project's own functions are called.

A hook's exception aborts the run at once: it travels inside `HookAbort`, past everything that turns failures into
results, and comes out of the run as it was raised.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from types import CodeType, TracebackType

__all__ = ["HookAbort", "HookPoint", "Hooks"]


class HookPoint(enum.StrEnum):
    """When a hook is called, and with which keywords."""

    START = "start"
    """An agent's run begins: `agent`."""
    FINISHED = "finished"
    """It came to its end: `agent`."""
    ERROR = "error"
    """It ended early: `agent, error`."""
    PRE_LLM_CALL = "pre_llm_call"
    """Before a model request: `agent, messages`."""
    POST_LLM_CALL = "post_llm_call"
    """After its response: `agent, response`."""
    PRE_TOOL_CALL = "pre_tool_call"
    """Before a call is decided about: `agent, tool_name, arguments`."""
    POST_TOOL_CALL = "post_tool_call"
    """After it ran: `agent, tool_name, result`."""


class HookAbort(Exception):  # noqa: N818 (not an error of its own: it carries one)
    """Carries a hook's exception to the root of the run."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Hooks:
    """The hooks of one agent, by point, in declared order.

    Args:
        declared: `(HookPoint, function)` pairs; a point may be given by its name in files.
    """

    def __init__(self, declared: Sequence[tuple[HookPoint | str, Callable[..., object]]] = ()) -> None:
        self._by_point: dict[HookPoint, list[Callable[..., object]]] = {}
        for point, function in declared:
            self._by_point.setdefault(HookPoint(point), []).append(function)

    def __bool__(self) -> bool:
        return bool(self._by_point)

    async def call(self, point: HookPoint, **data: object) -> None:
        """Call the hooks of a point one after the other.

        Raises:
            HookAbort: One of them raised.
        """
        for function in self._by_point.get(point, ()):
            try:
                result = function(**data)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:
                _say_where(error, function, point)
                raise HookAbort(error) from error


def _say_where(error: Exception, function: Callable[..., object], point: HookPoint) -> None:
    """Note on an exception which hook raised it: it ends the run as it is, and nobody else knows."""
    code: CodeType | None = getattr(function, "__code__", None)
    lines = [each.tb_lineno for each in _frames(error.__traceback__) if each.tb_frame.f_code is code]
    place = f" ({PurePath(code.co_filename).name}:{lines[-1]})" if code is not None and lines else ""
    note = f"raised by the hook {getattr(function, '__name__', function)!s} at {point.value}{place}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _frames(at: TracebackType | None) -> Iterator[TracebackType]:
    while at is not None:
        yield at
        at = at.tb_next
