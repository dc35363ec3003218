"""Exceptions of a project's own code: which exception to name, and the place in the project's files it comes from.

An exception may wrap others: an `ExceptionGroup` holds them, `raise ... from ...` names the cause. What a person needs
is the innermost of them, and the line of their own that raised it.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

from llm_do import errors
from llm_do._machine_limits import Limit, find_limit
from llm_do._startup.frozen import frozen
from llm_do.errors import ContextValidationError, EntryError, LlmDoError, ToolError
from llm_do.text.exception_text import exception_text
from llm_do.text.json_data import NotDataError
from llm_do.text.surrogates import replace_surrogates
from llm_do.text.words import place_text

__all__ = [
    "DATA_HINT",
    "Fault",
    "building",
    "find_fault",
    "function_place",
    "locate",
    "not_data_error",
    "project_error",
    "restored_error",
]

E = TypeVar("E", bound=LlmDoError)


@frozen
class Fault:
    """An exception of a project's own code, in words.

    Args:
        type: The name of the exception's class.
        message: Its message, with its innermost cause; empty if it has none.
        file: The file it comes from, relative to the project's folder if it is there; None if unknown.
        line: The line in that file.
        limit: What the machine lacks, if that is the reason; the place is then the project's own line, if there is one.
    """

    type: str
    message: str
    file: str | None = None
    line: int | None = None
    limit: Limit | None = None

    @property
    def text(self) -> str:
        """Class and message; of a limit of the machine its message."""
        if self.limit is not None:
            return self.message
        return f"{self.type}: {self.message}" if self.message else self.type

    def after(self, failure: str) -> str:
        """The sentence that begins with `failure`, which names who raised it, unless the machine is at fault."""
        return self.message if self.limit is not None else f"{failure} {self.text}"

    @property
    def place(self) -> str:
        """The place in brackets, to be appended to a sentence; empty if it is unknown."""
        return place_text(self.file, self.line)

    def __str__(self) -> str:
        return f"{self.text}{self.place}"


def find_fault(error: BaseException, root: Path | None = None) -> Fault:
    """Find the exception to name and its place; `root` is the project's folder.

    Example:
        >>> find_fault(ExceptionGroup("two tasks", [KeyError("x"), ValueError("y")])).text
        "KeyError: 'x' and 1 more"
    """
    chain = list(_chain(error))
    first = next(each for each in chain if not _members(each))
    limit = next((found for each in chain if (found := _limit(each)) is not None), None)
    if limit is not None:
        file, line = next(_places(chain, root, own=True), (None, None))
        return Fault(type(first).__name__, limit.message, file, line, limit)
    kind, _, message = exception_text(first).partition(": ")
    if chain[-1] is not first:
        message += f"{', ' if message else ''}caused by {exception_text(chain[-1])}"
    others = sum(max(len(_members(each)) - 1, 0) for each in chain)
    if others:
        message += f" and {others} more"
    places = (place for own in (True, False) for place in _places(chain, root, own=own))
    file, line = next(places, (None, None))
    return Fault(kind, _written(message), file, line)


def project_error(
    kind: type[E],
    failure: str,
    error: BaseException,
    root: Path | None,
    *,
    agent_path: str | None = None,
    advice: str | None = None,
    about: object = None,
) -> E:
    """The error of an exception that a project's own code raised.

    Args:
        kind: The error's class.
        failure: The sentence up to the exception.
        error: The exception.
        root: The project's folder.
        agent_path: The call path of the agent concerned.
        advice: What to do about it, besides looking at the traceback.
        about: The function it is about, whose place is named if no line of the project's own raised it.
    """
    fault = find_fault(error, root)
    if fault.limit is not None:
        return kind(fault.message, hint=fault.limit.hint, file=fault.file, line=fault.line, agent_path=agent_path)
    hint = "--debug shows the traceback."
    file, line = fault.file, fault.line
    if file is None and callable(about):
        file, line = function_place(about, root)
    return kind(
        fault.after(failure),
        hint=f"{advice} {hint}" if advice else hint,
        file=file,
        line=line,
        agent_path=agent_path,
    )


@contextmanager
def building(agent: str | None, root: Path, part: str | None = None, about: object = None) -> Generator[None]:
    """Explain what keeps an agent, or a part of it, from being built.

    Args:
        agent: The agent's name; None for something that no agent is built for.
        root: The project's folder.
        part: What is built, such as "the tool 'send'"; None for the agent's declaration as a whole.
        about: The function behind it.
    """
    try:
        yield
    except LlmDoError:
        raise
    except Exception as error:
        if agent is None:
            failure = f"{part} can't be built:"
        else:
            failure = f"agent {agent!r} can't be built:" + (f" {part}:" if part is not None else "")
        advice = "Look at what its declaration lists;" if part is None else f"Look at how {part} is declared;"
        raise project_error(EntryError, failure, error, root, agent_path=agent, advice=advice, about=about) from error


def function_place(function: Callable[..., Any], root: Path | None) -> tuple[str | None, int | None]:
    """Return file and line of a function that may be decorated, bound, a `partial` or a callable object.

    The file is relative to the project's folder if it is there; both are None if they are unknown.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None, None
    path = Path(code.co_filename)
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix(), code.co_firstlineno
    return _shown(path), code.co_firstlineno


def locate(error: LlmDoError, raised: BaseException, root: Path) -> None:
    """Set an error's place to the innermost line of the project's own code that something was raised through."""
    if error.file is None and (place := _place(raised, root, own=True)) is not None:
        error.file, error.line = place


def restored_error(type: str, message: str, *, hint: str | None = None, **place: Any) -> LlmDoError | None:
    """An error of one of llm-do's classes; None if `type` isn't the name of one.

    Args:
        type: The class's name.
        message: Its message.
        hint: What to do about it.
        place: Its `file`, `line` and `agent_path`.

    Example:
        >>> restored_error("ToolError", "it broke"), restored_error("KeyError", "x")
        (ToolError('it broke'), None)
    """
    kind: Any = getattr(errors, type, None)
    if not (isinstance(kind, builtins.type) and issubclass(kind, LlmDoError)):
        return None
    if kind is ContextValidationError:  # what it was about isn't kept
        kind = ToolError
    error = kind(message, hint=hint)
    for name, value in place.items():
        setattr(error, name, value)
    return error


DATA_HINT = "Return text, a pydantic model, a dataclass or JSON-like data."
"""What to do about a result that can't be written as JSON data."""


def not_data_error(
    name: str, error: NotDataError, function: Callable[..., Any] | None, root: Path | None, agent_path: str
) -> EntryError:
    """The error for a result that isn't data, at the function that returned it."""
    file, line = function_place(function, root) if function is not None else (None, None)
    hint = "Write `await` before the call." if "awaited" in str(error) else DATA_HINT
    return EntryError(f"{name} returned {error}", hint=hint, file=file, line=line, agent_path=agent_path)


def _written(message: str) -> str:
    """A message that can be written anywhere, cut if it is too long for a line of a report."""
    message = replace_surrogates(message)
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


_LONGEST = 4000
"""Characters of a message: an exception's text may be the whole of what could not be read."""


def _limit(error: BaseException) -> Limit | None:
    """What the machine lacks; a file or a socket of the project's code that would block isn't a limit."""
    return None if isinstance(error, BlockingIOError) else find_limit(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it wraps, the innermost last."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        if isinstance(current, LlmDoError):  # its own text says what its cause was
            return
        members = _members(current)
        current = members[0] if members else current.__cause__


def _members(error: BaseException) -> Sequence[BaseException]:
    """The exceptions in a group; empty for any other."""
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions


def _places(chain: Sequence[BaseException], root: Path | None, *, own: bool) -> Iterator[tuple[str, int]]:
    """Yield the place of each exception of a chain that has one, the innermost first."""
    return (place for each in reversed(chain) if (place := _place(each, root, own=own)) is not None)


def _place(error: BaseException, root: Path | None, *, own: bool) -> tuple[str, int] | None:
    """Return file and line of an exception's innermost frame: in the project's files, or else in no library's."""
    if isinstance(error, LlmDoError) and error.file is not None and error.line is not None and own:
        return error.file, error.line
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = Path(frame.f_code.co_filename)
        if own and root is not None and path.is_relative_to(root):
            inside = path.relative_to(root)
            if not _INSTALLED.intersection(inside.parts):
                return inside.as_posix(), line
        elif not own and path.is_absolute() and not any(path.is_relative_to(folder) for folder in _library_folders()):
            return _shown(path), line
    return None


_INSTALLED = frozenset({"site-packages", "dist-packages"})


@cache
def _library_folders() -> tuple[Path, ...]:
    """The folders of the interpreter's and installed libraries, and of this package."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in names))


def _shown(path: Path) -> str:
    """A path as the person in the current folder would write it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return str(path)
