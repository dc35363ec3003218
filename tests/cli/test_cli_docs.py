from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_commands_is_what_their_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    made = runpy.run_path(str(DOCS / "make_cli.py"))["page"]()

    assert (DOCS / "cli.md").read_text(encoding="utf-8") == made, "run: python docs/make_cli.py"
