"""What a run did compared with what its test expects: each difference is a failure with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import CassetteMissError, LlmDoError, RunTimeoutError
from llm_do.files.root import FileRefusedError, Root
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.calls import Call, CallPatterns, calls_of
from llm_do.testing.cases.contents import Content, Finding, check_content
from llm_do.testing.cases.results import Failure
from llm_do.testing.cassettes.masks import Masks
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text

if TYPE_CHECKING:
    from llm_do.formats.case_file import FileContentFile
    from llm_do.testing.cases.case import Case
    from llm_do.testing.cases.workspace import Workspace
    from llm_do.testing.played_runs import Played

__all__ = ["Ran", "check_run", "miss_failure"]

_LARGEST = 16 * 1024 * 1024


@frozen
class Ran:
    """One run of a case.

    Args:
        case: The case.
        workspace: Where it ran.
        played: What it did.
        seconds: How long it took.
        is_free: Whether only models that cost nothing were asked.
    """

    case: Case
    workspace: Workspace
    played: Played
    seconds: float
    is_free: bool = False

    @property
    def turns(self) -> Sequence[Played]:
        """The runs of the conversation, or the one."""
        return self.played.turns or [self.played]

    @property
    def steps(self) -> int:
        """Model responses."""
        return sum(turn.result.steps for turn in self.turns)

    @property
    def usage(self) -> Usage:
        """The usage of all runs."""
        usage = sum((turn.result.usage for turn in self.turns), Usage())
        return replace(usage, cost_usd=0.0) if self.is_free else usage

    @property
    def status(self) -> str:
        """How the first run that didn't complete ended, or the last."""
        return next((turn.status for turn in self.turns if turn.status != "completed"), "completed")

    @property
    def error(self) -> BaseException | None:
        """What ended it early."""
        return next((turn.result.error for turn in self.turns if turn.result.error is not None), None)

    @property
    def output(self) -> str | None:
        """What the entry returned, as text."""
        output = self.played.output
        return None if output is None else output_text(output)

    def portable(self, data: list[object]) -> list[object]:
        """Data with `<project>` for the folder of the run, which has another name each time."""
        text = json.dumps(data, ensure_ascii=False)
        if str(self.workspace.root) not in text:
            return data
        return cast("list[object]", json.loads(Masks(self.workspace.root, str).portable(text)))


def check_run(ran: Ran) -> list[Failure]:
    """Compare a run with its test.

    Of a run that ended in another way than expected, only that is reported, with what must not have happened in it:
    that its output and files aren't there yet follows.
    """
    calls = calls_of(ran.played.events)
    ended = list(_check_status(ran))
    forbidden = [*_check_never(ran, calls), *_check_limits(ran)]
    if ended:
        return [*ended, *forbidden]
    return [
        *_check_output(ran),
        *_check_tools(ran, calls),
        *_check_denied(ran, calls),
        *_check_files(ran),
        *forbidden,
    ]


def miss_failure(error: CassetteMissError, hint: str, last_time: Usage) -> Failure:
    """The failure of a request that the cassette has no answer for."""
    return Failure(_path(error), error.line, error.message, block=error.block, hint=hint, last_time=last_time)


def _fail(
    ran: Ran,
    what: str,
    *loc: str | int,
    expected: str | None = None,
    got: str | None = None,
    block: str | None = None,
    hint: str | None = None,
) -> Failure:
    """A failure at a part of `expect`."""
    return Failure(ran.case.file, ran.case.line_of(*loc), what, expected, got, block, hint)


def _check_status(ran: Ran) -> Iterator[Failure]:
    expected, error = ran.case.expect.status or "completed", ran.error
    if ran.status == expected:
        return
    if isinstance(error, RunTimeoutError) and expected != "limited":
        limit = ran.case.limit("seconds")
        hint = None if limit is not None else "Allow it more with `at_most: {seconds: ...}`."
        line = ran.case.line if limit is None else limit[1]
        yield Failure(ran.case.file, line, f"the run took longer than {ran.case.seconds:g} s", hint=hint)
        return
    hint, lines = None, []
    if isinstance(error, LlmDoError):
        place = "" if error.file is None else f" ({error.file}{'' if error.line is None else f':{error.line}'})"
        lines = [f"{error.message}{place}", *(error.block or "").splitlines()]
        hint = error.hint
    elif ran.status == "denied":
        denials = [record for turn in ran.turns for record in turn.result.denials]
        lines = [record.reason for record in denials]
        tool = denials[0].tool if denials else "TOOL"
        hint = f"Answer it, such as with `answer: {{{tool}: once}}`, or expect `status: denied`."
    yield _fail(
        ran,
        f"the run ended as {ran.status}",
        "status",
        expected=expected,
        got=ran.status,
        block="\n".join(lines) or None,
        hint=hint,
    )


def _check_output(ran: Ran) -> Iterator[Failure]:
    expected = ran.case.expect.output
    if expected is None:
        return
    text, data = ran.portable([ran.output or "", to_json_data(ran.played.output)])
    content = Content("the output", str(text), data)
    for finding in check_content(expected, content, ran.workspace.root, _source(ran), ran.played):
        yield _found(ran, finding, "output")


def _found(ran: Ran, finding: Finding, *loc: str | int) -> Failure:
    return _fail(ran, finding.what, *loc, *finding.key, expected=finding.expected, got=finding.got, block=finding.block)


def _check_tools(ran: Ran, calls: Sequence[Call]) -> Iterator[Failure]:
    """Whether the expected calls ran in their order, with others between."""
    expected, patterns = ran.case.expect.tools, CallPatterns(ran.workspace.project)
    at = 0
    for index, pattern in enumerate(expected):
        fitting = (n for n, call in enumerate(calls) if n >= at and call.ran and patterns.matches(pattern, call))
        found = next(fitting, None)
        if found is not None:
            at = found + 1
            continue
        what = f"no call of {pattern}" + (f" after {expected[index - 1]}" if index else "")
        if any(not call.ran and patterns.matches(pattern, call) for call in calls):
            what += ": it was requested, but didn't run"
        elif any(call.ran and patterns.matches(pattern, call) for call in calls[:at]):
            what += ": it ran before"
        yield _fail(ran, what, "tools", index, expected=", ".join(expected), got=_names(calls), block=_listed(calls))
        return


def _names(calls: Sequence[Call]) -> str:
    return ", ".join(call.tool for call in calls) or "no calls"


def _listed(calls: Sequence[Call]) -> str | None:
    """The calls as a block."""
    lines = [f"{call.text}{'' if call.status == 'success' else f'  {call.status}'}" for call in calls]
    return "\n".join(lines[:40] + ([f"… {len(lines) - 40} more"] if len(lines) > 40 else [])) or None


def _check_never(ran: Ran, calls: Sequence[Call]) -> Iterator[Failure]:
    patterns = CallPatterns(ran.workspace.project)
    for index, pattern in enumerate(ran.case.expect.never):
        made = [call for call in calls if patterns.matches(pattern, call, broadly=True)]
        if made:
            what = f"{made[0].tool} was called" if made[0].ran else f"{made[0].tool} was requested"
            yield _fail(ran, what, "never", index, expected=f"never {pattern}", got=made[0].text, block=_more(made))


def _more(made: Sequence[Call]) -> str | None:
    return _listed(made) if len(made) > 1 else None


def _check_denied(ran: Ran, calls: Sequence[Call]) -> Iterator[Failure]:
    patterns = CallPatterns(ran.workspace.project)
    denied = [call for call in calls if call.status == "denied"]
    for index, pattern in enumerate(ran.case.expect.denied):
        if any(patterns.matches(pattern, call) for call in denied):
            continue
        allowed = next((call for call in calls if call.ran and patterns.matches(pattern, call)), None)
        what = f"no call of {pattern} was denied" + ("" if allowed is None else ": it ran")
        yield _fail(ran, what, "denied", index, expected=pattern, got=_names(denied), block=_listed(calls))


def _check_files(ran: Ran) -> Iterator[Failure]:
    root = Root(ran.workspace.root)
    for name, expected in ran.case.expect.files.items():
        exists = (ran.workspace.root / name).is_file()
        if expected.absent:
            if exists or (ran.workspace.root / name).exists():
                yield _fail(ran, f"{name} exists", "files", name, "absent", expected="no such file")
        elif not exists:
            yield _fail(ran, f"there is no file {name}", "files", name)
        else:
            yield from _check_file(ran, root, name, expected)


def _check_file(ran: Ran, root: Root, name: str, expected: FileContentFile) -> Iterator[Failure]:
    try:
        text = root.read(name, limit=_LARGEST).decode("utf-8")
    except (FileRefusedError, OSError) as error:
        yield _fail(ran, f"{name} can't be read: {error}", "files", name)
        return
    except UnicodeDecodeError:
        yield _fail(ran, f"{name} is not UTF-8 text", "files", name)
        return
    (text,) = ran.portable([text])
    for finding in check_content(
        expected, Content(name, str(text), text), ran.workspace.root, _source(ran), ran.played
    ):
        yield _found(ran, finding, "files", name)


def _check_limits(ran: Ran) -> Iterator[Failure]:
    usage = ran.usage
    if (limit := ran.case.limit("steps")) is not None and ran.steps > limit[0]:
        yield _exceeded(ran, "steps", limit, str(ran.steps))
    if (limit := ran.case.limit("tool_calls")) is not None and usage.tool_calls > limit[0]:
        yield _exceeded(ran, "tool calls", limit, str(usage.tool_calls))
    limit = ran.case.limit("usd")
    if limit is not None and usage.cost_usd is None and usage.total_tokens:
        what = "the cost isn't known: a model has no price"
        yield Failure(ran.case.file, limit[1], what, f"at most ${limit[0]:g}", f"{usage.total_tokens} tokens")
    elif limit is not None and (usage.cost_usd or 0) > limit[0]:
        yield _exceeded(ran, "US dollars", limit, f"{usage.cost_usd:g}")
    limit = ran.case.limit("seconds")
    if limit is not None and ran.seconds > limit[0] and not isinstance(ran.error, RunTimeoutError):
        yield _exceeded(ran, "seconds", limit, f"{ran.seconds:.1f}")


def _exceeded(ran: Ran, noun: str, limit: tuple[float, int], got: str) -> Failure:
    return Failure(ran.case.file, limit[1], f"too many {noun}", f"at most {limit[0]:g}", got)


def _source(ran: Ran) -> Path:
    return ran.workspace.root / ran.case.file


def _path(error: LlmDoError) -> Path | None:
    return None if error.file is None else Path(error.file)
