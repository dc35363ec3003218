"""For a project's own tests: run it against answers that are written down, and look at what it did."""

from __future__ import annotations

from llm_do.testing.playing import Played as Played
from llm_do.testing.playing import Question as Question
from llm_do.testing.playing import ToolRun as ToolRun
from llm_do.testing.playing import play as play

__all__ = ["Played", "Question", "ToolRun", "play"]
