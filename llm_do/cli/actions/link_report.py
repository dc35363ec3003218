"""A link report on stderr, and its paths as they are seen from the current folder.

What a report looks like is `llm_do.ui.reports.diagnostic_text`'s business.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._bounded_files import read_bounded_text
from llm_do.cli.process.streams import warn
from llm_do.ui.reports.diagnostic_text import render_text
from llm_do.ui.terminal.screen import terminal_columns, wants_color

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic
    from llm_do.linker.linker import LinkReport
    from llm_do.linker.subprocess_check import CheckResult

__all__ = ["as_text", "file_from_here", "from_here", "read_source", "show"]


def show(report: LinkReport | CheckResult, *, no_color: bool = False) -> None:
    """Show all that was found on stderr."""
    color = wants_color(os.environ, no_color=no_color)
    text = as_text(report.diagnostics, report.root, color=color, width=terminal_columns())
    if text:
        warn(text)


def as_text(diagnostics: Iterable[Diagnostic], root: Path, *, color: bool, width: int | None) -> str:
    """Diagnostics as text; where there are colours, their places are links to the files."""
    try:
        folder = Path.cwd() if color else None
    except OSError:  # the current folder is gone, and paths are absolute
        folder = Path()
    return render_text(from_here(diagnostics, root), read_source, color=color, width=width, folder=folder)


def from_here(diagnostics: Iterable[Diagnostic], root: Path) -> tuple[Diagnostic, ...]:
    """Diagnostics with paths that a terminal can open and GitHub can find: relative to the current folder."""
    return tuple(
        replace(item, place=replace(item.place, file=file_from_here(item.file, root))) if item.file else item
        for item in diagnostics
    )


def file_from_here(file: str, root: Path) -> str:
    """A file of a project, relative to the current folder if the project is below it, otherwise absolute."""
    try:
        start = root.relative_to(Path.cwd())
    except (OSError, ValueError):  # the current folder is gone, or elsewhere
        start = root
    return (start / file).as_posix()


def read_source(file: str) -> str | None:
    """The text of a file by a path that `from_here` made, None when it can't be read."""
    try:
        return read_bounded_text(Path(file), errors="replace")
    except (OSError, ValueError):
        return None
