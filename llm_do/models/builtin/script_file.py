"""The YAML file of a script: the turns of each agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml

from llm_do._bounded_files import read_bounded_text
from llm_do._startup.frozen import frozen
from llm_do.errors import ModelUnavailableError

__all__ = ["Script", "ScriptedCall", "ScriptedError", "Step", "Turn", "load_script", "parse_script"]

T = TypeVar("T")

TURN_KEYS = ("text", "tools", "output", "error", "delay", "usage", "expect", "cases")
CALL_KEYS = ("name", "args", "id")
_MAX_BYTES = 256 * 1024 * 1024
_MAX_VALUES = 1_000_000
ERROR_KEYS = ("status", "message", "times", "retry_after")


@frozen
class ScriptedCall:
    """A tool call."""

    name: str
    args: Mapping[str, Any] | str
    """The arguments; text is sent unchanged, even if it isn't valid JSON."""

    id: str = ""
    """The id of the call; one is generated if it is empty."""


@frozen
class ScriptedError:
    """A failed request."""

    status: int | None = None
    """The HTTP status; None simulates a lost connection."""

    message: str = "scripted failure"
    times: int = 1
    """How many requests fail before the next turn is used."""

    retry_after: float | None = None
    """Seconds to wait, as a provider's `Retry-After` header has them."""


@frozen
class Turn:
    """One answer."""

    line: int
    text: str | None = None
    tools: tuple[ScriptedCall, ...] = ()
    output: Any = None
    """Structured output, sent in the form that the agent's output type requires."""

    has_output: bool = False
    """Whether there is an output, which may be null."""

    delay: float = 0.0
    """Seconds before the answer."""

    usage: tuple[int, int] | None = None
    """Input and output tokens; None uses invented numbers."""

    expect: str = ""
    """Text that the answered message must contain."""

    cases: tuple[Turn, ...] = ()
    """Instead of an answer, several of them: the first one whose `expect` the message contains is the answer."""


@frozen
class Step:
    """An answer and the errors before it; the answer is None if the script ends with errors."""

    errors: tuple[ScriptedError, ...]
    turn: Turn | None


@frozen
class Script:
    """A script: one list of steps for all agents, or one for each."""

    path: Path
    agents: Mapping[str | None, tuple[Step, ...]]
    """The steps by agent name; None is the name for all agents."""

    def steps(self, agent: str) -> tuple[Step, ...] | None:
        """Return the steps of an agent; None if the script has none for it."""
        return self.agents.get(agent, self.agents.get(None))


def load_script(path: Path) -> Script:
    """Read a script; a file is read again only if it has changed."""
    try:
        stamp = path.stat()
        return _load(os.path.abspath(path), stamp.st_mtime_ns, stamp.st_size)  # noqa: PTH100
    except (OSError, ValueError) as error:  # ValueError: the path has a character that file names can't have
        reason = error.strerror if isinstance(error, OSError) else None
        raise ModelUnavailableError(
            f"the script {path} can't be read: {reason or error}",
            hint="name an existing file: `script:PATH`",
        ) from error


@lru_cache(maxsize=64)
def _load(path: str, modified: int, size: int) -> Script:  # noqa: ARG001
    file = Path(path)
    if not os.path.isfile(file):
        raise ModelUnavailableError(f"the script {path} is not a file", hint="name an existing file: `script:PATH`")
    if size > _MAX_BYTES:
        raise ModelUnavailableError(
            f"the script {path} is larger than {_MAX_BYTES // 1024 // 1024} MiB",
            file=path,
            hint="split the script, or leave out what isn't needed",
        )
    try:
        text = read_bounded_text(Path(file), _MAX_BYTES)
    except UnicodeDecodeError as error:
        raise ModelUnavailableError(
            f"the script {path} is not UTF-8 text", file=path, hint="save the file as UTF-8"
        ) from error
    return parse_script(text, Path(path))


def parse_script(text: str, path: Path) -> Script:
    """Parse the text of a script.

    Example:
        >>> script = parse_script("- text: Hello", Path("answers.yaml"))
        >>> script.steps("main")[0].turn.text
        'Hello'
    """
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is not None and _values(root, {}) > _MAX_VALUES:
            raise _fault(path, 1, f"has aliases that expand to more than {_MAX_VALUES:,} values")
        return _script(loader, root, path)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _fault(path, line, f"is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _fault(path, 1, f"is not YAML: {str(error).splitlines()[0]}") from error
    finally:
        loader.dispose()


def _script(loader: yaml.CSafeLoader, root: yaml.Node | None, path: Path) -> Script:
    if isinstance(root, yaml.SequenceNode):
        return Script(path, {None: _steps(loader, root, path)})
    top = _children(root, path, "must be a list of turns, or `agents:` with one list per agent")
    _known_keys(top, ("agents",), path, 1)
    if not top:
        raise _fault(path, 1, "must have turns or `agents`")
    agents = _children(top["agents"], path, "must have one list of turns for each agent in `agents`")
    return Script(path, {name: _steps(loader, node, path) for name, node in agents.items()})


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values of a node, with those that aliases repeat."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0  # a node that contains itself is refused when it is constructed
        items = cast("list[yaml.Node | tuple[yaml.Node, yaml.Node]]", node.value)
        inner = [each for item in items for each in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_values(each, known) for each in inner)
    return known[id(node)]


def _children(node: yaml.Node | None, path: Path, problem: str) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _fault(path, node.start_mark.line + 1 if node else 1, problem)
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
    return {str(cast("object", key.value)): value for key, value in pairs}


def _steps(loader: yaml.CSafeLoader, node: yaml.Node, path: Path) -> tuple[Step, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise _fault(path, node.start_mark.line + 1, "must have a list of turns here")
    construct = cast("Callable[..., object]", loader.construct_object)  # pyright: ignore[reportUnknownMemberType]
    steps: list[Step] = []
    errors: list[ScriptedError] = []
    for item in cast("list[yaml.Node]", node.value):
        read = _turn(construct(item, deep=True), path, item.start_mark.line + 1)
        if isinstance(read, ScriptedError):
            errors.append(read)
        else:
            steps.append(Step(tuple(errors), read))
            errors = []
    if errors:
        steps.append(Step(tuple(errors), None))
    return tuple(steps)


def _turn(value: object, path: Path, line: int) -> Turn | ScriptedError:
    turn = _mapping(value, path, line, "a turn")
    _known_keys(turn, TURN_KEYS, path, line)
    read = _Reader(turn, path, line)
    if "cases" in turn:
        return Turn(line, cases=_cases(turn, path, line))
    if "error" in turn:
        if len(turn) > 1:
            raise _fault(path, line, "has a turn with `error` and other keys")
        return _error(turn["error"], path, line)
    if not any(key in turn for key in ("text", "tools", "output")):
        raise _fault(path, line, "has a turn without `text`, `tools`, `output` or `error`")
    calls = read.get("tools", _is_list, "a list of calls", cast("list[object]", []))
    usage = read.get("usage", _is_pair, "two numbers: input and output tokens", None)
    return Turn(
        line=line,
        text=read.get("text", _is_text, "text", None),
        tools=tuple(_call(call, path, line) for call in calls),
        output=turn.get("output"),
        has_output="output" in turn,
        delay=read.get("delay", _is_number, "a number of seconds", 0.0),
        usage=(usage[0], usage[1]) if usage else None,
        expect=read.get("expect", _is_text, "text", ""),
    )


def _cases(turn: Mapping[str, object], path: Path, line: int) -> tuple[Turn, ...]:
    cases = turn["cases"]
    if len(turn) > 1 or not isinstance(cases, list) or not cases:
        raise _fault(path, line, "has a turn whose `cases` are not a list of turns, or that has other keys as well")
    read = [_turn(case, path, line) for case in cast("list[object]", cases)]
    found = tuple(case for case in read if isinstance(case, Turn) and not case.cases)
    if len(found) < len(read):
        raise _fault(path, line, "has `cases` with an `error` or with other `cases` in them")
    return found


def _call(value: object, path: Path, line: int) -> ScriptedCall:
    call = _mapping(value, path, line, "a call in `tools`")
    _known_keys(call, CALL_KEYS, path, line)
    read = _Reader(call, path, line)
    name = read.get("name", _is_text, "text", "")
    if not name:
        raise _fault(path, line, "has a call without `name`")
    arguments = read.get("args", _is_arguments, "a mapping or text", cast("Mapping[str, Any] | str", {}))
    return ScriptedCall(name, arguments, read.get("id", _is_text, "text", ""))


def _error(value: object, path: Path, line: int) -> ScriptedError:
    error = _mapping(value, path, line, "`error`")
    _known_keys(error, ERROR_KEYS, path, line)
    read = _Reader(error, path, line)
    default = ScriptedError()
    return ScriptedError(
        status=read.get("status", _is_status, "an HTTP status from 400 to 599", None),
        message=read.get("message", _is_text, "text", default.message),
        times=read.get("times", _is_count, "a positive whole number", default.times),
        retry_after=read.get("retry_after", _is_number, "a number of seconds", None),
    )


@frozen
class _Reader:
    """A mapping of the file, with a type check for each value that is read."""

    values: Mapping[str, Any]
    path: Path
    line: int

    def get(self, key: str, fits: Callable[[Any], bool], kind: str, default: T) -> T:
        value = self.values.get(key)
        if value is None:
            return default
        if not fits(value):
            raise _fault(self.path, self.line, f"has `{key}: {value!r}`, which must be {kind}")
        return cast("T", value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_status(value: Any) -> bool:
    return _is_count(value) and 400 <= value <= 599


def _is_pair(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    numbers = cast("list[object]", value)
    return len(numbers) == 2 and all(_is_count(number) or number == 0 for number in numbers)


def _is_arguments(value: Any) -> bool:
    return isinstance(value, str | dict)


def _mapping(value: object, path: Path, line: int, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fault(path, line, f"has {what} that is not a mapping")
    return cast("dict[str, Any]", value)


def _known_keys(value: Mapping[str, object], known: tuple[str, ...], path: Path, line: int) -> None:
    for key in value:
        if key not in known:
            raise _fault(path, line, f"has an unknown key {key!r}; known keys: {', '.join(known)}")


def _fault(path: Path, line: int, problem: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"the script {path.name} {problem}",
        file=str(path),
        line=line,
        hint="correct the script; docs/models.md#scripts shows its form",
    )
