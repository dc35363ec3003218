"""`Diagnostic` and `Location`: one finding of the linker, and the place in a file that it points at.

Both are values: `llm_do.diagnostics.codes` makes diagnostics, `llm_do.ui.reports.diagnostic_text` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from llm_do._startup.frozen import frozen

__all__ = ["Diagnostic", "Location", "Severity"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A stretch of text in a file. Lines and columns count from 1; `end` is exclusive.

    Args:
        file: Path relative to the project root in POSIX spelling (absolute when outside of it).
        line: First line.
        column: First column, in characters.
        end_line: Line of the end; 0 when the end isn't known.
        end_column: Column after the last character; 0 when the end isn't known.
    """

    file: str
    line: int = 1
    column: int = 1
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Diagnostic:
    """One finding of the linker.

    Args:
        code: Stable code, such as `LD201`.
        severity: Errors stop a project from linking, warnings don't.
        message: What is wrong and why, one sentence.
        place: Where.
        hint: What to do about it.
        block: Lines to show as they are below the hint, such as what to write instead.
    """

    code: str
    severity: Severity
    message: str
    place: Location
    hint: str | None = None
    block: str | None = None

    @property
    def file(self) -> str:
        """The file the finding is in."""
        return self.place.file

    @property
    def line(self) -> int:
        """The line it starts on, from 1."""
        return self.place.line

    @property
    def column(self) -> int:
        """The column it starts at, from 1."""
        return self.place.column

    @property
    def end(self) -> tuple[int, int] | None:
        """Line and column after it, when known."""
        return (self.place.end_line, self.place.end_column) if self.place.end_line else None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Diagnostic:
        """The finding that `to_dict` wrote."""
        end = data["end"] or {"line": 0, "column": 0}
        place = Location(data["file"], data["line"], data["column"], end["line"], end["column"])
        return cls(data["code"], data["severity"], data["message"], place, data["hint"], data.get("block"))

    def to_dict(self) -> dict[str, object]:
        """The finding as JSON data, as `check --format json` prints it; `block` only if there is one."""
        end = self.end
        data: dict[str, object] = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end": {"line": end[0], "column": end[1]} if end else None,
            "hint": self.hint,
        }
        return data if self.block is None else {**data, "block": self.block}
