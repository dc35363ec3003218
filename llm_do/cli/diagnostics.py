"""A link report on stderr or stdout, as text; what it looks like is `llm_do.spec.render`'s business."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.cli.streams import warn
from llm_do.spec.render import render_text
from llm_do.ui.screen import wants_color

if TYPE_CHECKING:
    from llm_do.project.apart import Checked
    from llm_do.project.linker import LinkReport

__all__ = ["show", "source_reader"]


def show(report: LinkReport | Checked, *, no_color: bool = False) -> None:
    """Show all that was found on stderr."""
    text = render_text(
        report.diagnostics,
        source_reader(report.root),
        color=wants_color(os.environ, no_color=no_color),
        width=_columns(),
    )
    if text:
        warn(text)


def source_reader(root: Path) -> Callable[[str], str | None]:
    """What reads the source that a diagnostic points at.

    Args:
        root: The folder that the diagnostics' paths are relative to.
    """

    def read(file: str) -> str | None:
        try:
            return (root / file).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return None

    return read


def _columns() -> int | None:
    try:
        return os.get_terminal_size(2).columns or None
    except OSError:
        return None
