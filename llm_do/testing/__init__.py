"""Test a project: run it with scripted answers, and check what it did."""

from __future__ import annotations

from llm_do.testing.played_runs import Played as Played, Question as Question, ToolRun as ToolRun
from llm_do.testing.playing import play as play

__all__ = ["Played", "Question", "ToolRun", "play"]
