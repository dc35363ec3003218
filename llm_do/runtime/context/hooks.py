"""The seven points of an agent's life at which a project's own functions are called.

A hook's exception aborts the run at once: `HookAbort` carries it past everything that turns failures into results
and past `except Exception` in the project's code, and the run raises it unchanged. If a hook raises something that
is not an `Exception` (`SystemExit`, a panic in a native library), the run raises a `HookError`.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.errors import HookError, RunError
from llm_do.project.faults import project_error

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["HookAbort", "HookPoint", "Hooks", "RequestReplacement", "hook_name"]


class HookPoint(enum.StrEnum):
    """The points at which hooks are called, with the keyword arguments of each."""

    START = "start"
    """When an agent's run starts: `agent`."""
    FINISHED = "finished"
    """When it completed: `agent`."""
    ERROR = "error"
    """When it ended early: `agent, error`."""
    PRE_LLM_CALL = "pre_llm_call"
    """Before a model request: `agent, messages`; may return other messages, or a `RequestReplacement`."""
    POST_LLM_CALL = "post_llm_call"
    """After its response: `agent, response`; may return another response."""
    PRE_TOOL_CALL = "pre_tool_call"
    """Before the decision on a tool call: `agent, tool_name, arguments`."""
    POST_TOOL_CALL = "post_tool_call"
    """After the tool ran: `agent, tool_name, result`."""


@frozen
class RequestReplacement:
    """What a `pre_llm_call` hook may return: what the model is sent instead. The conversation itself isn't changed.

    Args:
        messages: The messages to send; None leaves them.
        settings: Model settings that are sent in addition to, or instead of, those of the request; None as a value
            leaves a setting out.

    Example:
        >>> RequestReplacement(settings={"temperature": 0.0, "seed": None}).settings
        {'temperature': 0.0, 'seed': None}
    """

    messages: Sequence[ModelMessage] | None = None
    settings: Mapping[str, Any] | None = None


class HookAbort(RunEndSignal):
    """Carries a hook's exception."""


class Hooks:
    """The hooks of one agent, by point, in declared order.

    Args:
        declared: `(HookPoint, function)` pairs; a point may be its name as written in files.
        root: The project's folder; a `HookError`'s file is relative to it.

    Raises:
        RunError: An item is not such a pair.
    """

    def __init__(
        self, declared: Sequence[tuple[HookPoint | str, Callable[..., object]]] = (), root: Path | None = None
    ) -> None:
        self._root = root
        self._by_point: dict[HookPoint, list[Callable[..., object]]] = {}
        for hook in declared:
            try:
                point, function = hook
                functions = self._by_point.setdefault(HookPoint(point), [])
            except (TypeError, ValueError) as error:
                raise RunError(
                    f"{hook!r} is not a hook: {error}",
                    hint=f"A hook is a pair of a point and a function; points are {', '.join(HookPoint)}.",
                ) from error
            functions.append(function)

    def __bool__(self) -> bool:
        return bool(self._by_point)

    def at(self, point: HookPoint) -> Sequence[Callable[..., object]]:
        """The hooks of a point, in order."""
        return self._by_point.get(point, ())

    def may_replace(self, point: HookPoint) -> bool:
        """Whether a hook of a point may return something; one that is annotated to return None doesn't."""
        return any(not _returns_nothing(function) for function in self.at(point))

    async def call(self, point: HookPoint, **data: object) -> None:
        """Call the hooks of a point in order."""
        for function in self.at(point):
            await self.call_one(function, point, **data)

    async def call_one(self, function: Callable[..., object], point: HookPoint, **data: object) -> object:
        """Call one hook of a point, and return what it returns."""
        try:
            result = function(**data)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            _add_location(error, function, point)
            raise HookAbort(error) from error
        except BaseException as error:  # noqa: BLE001 (native libraries raise more)
            reraise_if_cancelled(error)
            failure = project_error(
                HookError,
                f"the hook {hook_name(function)} at {point.value} raised",
                error,
                self._root,
                advice="A hook ends a run by raising an `Exception`.",
            )
            # Not the exception itself: it is no `Exception`, and nothing would catch it as the failure it is.
            failure.__cause__ = error
            raise HookAbort(failure) from failure


def hook_name(function: Callable[..., object]) -> str:
    """What a hook is called."""
    return str(getattr(function, "__name__", function))


def _returns_nothing(function: Callable[..., object]) -> bool:
    try:
        return inspect.signature(function).return_annotation in (None, "None")
    except (TypeError, ValueError):
        return False


def _add_location(error: Exception, function: Callable[..., object], point: HookPoint) -> None:
    """Add a note to an exception that says which hook raised it, since the exception is raised unchanged."""
    code: CodeType | None = getattr(function, "__code__", None)
    lines = [each.tb_lineno for each in _frames(error.__traceback__) if each.tb_frame.f_code is code]
    place = f" ({PurePath(code.co_filename).name}:{lines[-1]})" if code is not None and lines else ""
    note = f"raised by the hook {hook_name(function)} at {point.value}{place}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _frames(at: TracebackType | None) -> Iterator[TracebackType]:
    while at is not None:
        yield at
        at = at.tb_next
