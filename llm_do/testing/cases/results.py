"""What came of test cases: `SuiteResult` and its parts, also as JSON data.

Text, JUnit, tables and pytest's items are views of these values; none of them runs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.results import Usage
from llm_do.text.words import with_count

__all__ = ["CaseResult", "CaseStatus", "Failure", "SuiteResult", "cost_note"]

CaseStatus = Literal["passed", "failed", "error", "skipped"]


@frozen
class Failure:
    """One expectation that wasn't met, or the reason why a case couldn't run.

    Args:
        file: The file that is at fault, relative to the project's folder; None if there is no such file.
        line: The line in that file, from 1.
        what: What is wrong, as a sentence without its place.
        expected: What was expected, in one line.
        got: What was there instead, in one line.
        block: Several lines that explain it, such as a diff; shown as they are.
        hint: What to do about it.
        last_time: If the hint is to record the case again: what that used last time.
    """

    file: Path | None = None
    line: int | None = None
    what: str = ""
    expected: str | None = None
    got: str | None = None
    block: str | None = None
    hint: str | None = None
    last_time: Usage | None = None

    def to_dict(self) -> dict[str, Any]:
        """The failure as JSON data."""
        return {
            "file": None if self.file is None else self.file.as_posix(),
            "line": self.line,
            "what": self.what,
            "expected": self.expected,
            "got": self.got,
            "block": self.block,
            "hint": self.hint,
            "last_time": None if self.last_time is None else self.last_time.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Failure:
        """Return the failure that `to_dict` wrote."""
        values = dict(data)
        file, last_time = values.pop("file"), values.pop("last_time", None)
        values["last_time"] = None if last_time is None else Usage.from_dict(last_time)
        return cls(None if file is None else Path(PurePosixPath(file)), **values)


@frozen
class CaseResult:
    """What came of one test case in one column.

    Args:
        id: The file and the name, `tests/minutes.test.yaml::writes the minutes`; the same in each column.
        name: The name in the file.
        file: The test file, relative to the project's folder.
        line: The line on which the case begins, from 1.
        column: The matrix column; None without a matrix.
        status: `passed`; `failed`, if an expectation wasn't met or a recording is missing; `error`, if the case
            couldn't run; `skipped`, if it wasn't run at all.
        failures: Each expectation that wasn't met, in the order of the file; of the first repeat that failed.
        reason: Why it was skipped; None otherwise.
        repeats: How many times it was run.
        passed_repeats: How many of these passed.
        steps: Model responses, of all repeats together.
        tool_calls: Tool calls that ran, of all repeats together.
        usage: The usage of all repeats together. Of a replay, it is that of the recording.
        cost: US dollars; None if a price isn't known.
        seconds: The time it took.
        output: What the entry returned, as text, in the repeat that `failures` are of, else in the last; None if it
            returned nothing.
    """

    id: str
    name: str
    file: Path
    line: int
    column: str | None
    status: CaseStatus
    failures: tuple[Failure, ...] = ()
    reason: str | None = None
    repeats: int = 1
    passed_repeats: int = 0
    steps: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    seconds: float = 0.0
    output: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it doesn't make the suite fail: it passed, or was skipped."""
        return self.status in ("passed", "skipped")

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "id": self.id,
            "name": self.name,
            "file": self.file.as_posix(),
            "line": self.line,
            "column": self.column,
            "status": self.status,
            "failures": [failure.to_dict() for failure in self.failures],
            "reason": self.reason,
            "repeats": self.repeats,
            "passed_repeats": self.passed_repeats,
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "usage": self.usage.to_dict(),
            "cost_usd": None if self.cost is None else float(self.cost),
            "seconds": round(self.seconds, 3),
            "output": self.output,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CaseResult:
        """Return the result that `to_dict` wrote."""
        values = dict(data)
        cost = values.pop("cost_usd")
        values["file"] = Path(PurePosixPath(values["file"]))
        values["failures"] = tuple(Failure.from_dict(each) for each in values["failures"])
        values["usage"] = Usage.from_dict(values["usage"])
        values["cost"] = None if cost is None else Decimal(str(cost))
        return cls(**values)


@frozen
class SuiteResult:
    """What came of all test cases that were to be run.

    Args:
        cases: One for each case and column: in the order of files and cases, and of columns within a case.
        columns: The matrix columns; empty without a matrix.
        seconds: The time it took.
    """

    cases: tuple[CaseResult, ...]
    columns: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no case failed."""
        return all(case.ok for case in self.cases)

    def count(self, status: CaseStatus) -> int:
        """The number of cases that ended so."""
        return sum(case.status == status for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return {
            "cases": [case.to_dict() for case in self.cases],
            "columns": list(self.columns),
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteResult:
        """Return the result that `to_dict` wrote, to compare another with it."""
        cases = tuple(CaseResult.from_dict(each) for each in data["cases"])
        return cls(cases, tuple(data["columns"]), data["seconds"])


def cost_note(last_time: Usage) -> str:
    """What recording used last time, in parentheses; empty if nothing was recorded.

    Example:
        >>> cost_note(Usage(requests=2, cost_usd=0.0012)), cost_note(Usage())
        (' (2 requests, $0.0012 last time)', '')
    """
    if not last_time.requests:
        return ""
    cost = f", ${last_time.cost_usd:.4f}" if last_time.cost_usd is not None else ""
    return f" ({with_count(last_time.requests, 'request')}{cost} last time)"
