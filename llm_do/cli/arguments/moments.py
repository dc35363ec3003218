"""Moments as people write them: a day, a time, or how long ago."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import typer

from llm_do._startup.plain_commands import time_parser

__all__ = ["moment_parser"]


def moment_parser(value: Any) -> float:
    """The moment that an option names, in seconds since the epoch.

    Raises:
        typer.BadParameter: It names none.

    Example:
        >>> moment_parser("2026-11-28T14:30+00:00")
        1795876200.0
    """
    text = str(value).strip()
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return time.time() - time_parser(0)(text)
    except typer.BadParameter:
        raise typer.BadParameter(
            f"{value!r} is not a day, such as 2026-11-28, a time, such as 2026-11-28T14:30, or a time ago, such as 7d."
        ) from None
