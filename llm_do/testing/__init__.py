"""For a project's own tests: run it against answers that are written down, and look at what it did."""

from __future__ import annotations

from llm_do.testing.playing import Played as Played, Question as Question, ToolRun as ToolRun, play as play

__all__ = ["Played", "Question", "ToolRun", "play"]
