from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_commands_page_matches_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    made = runpy.run_path(str(DOCS / "make_cli.py"))["page"]()

    assert (DOCS / "cli.md").read_text(encoding="utf-8") == made, "run: python docs/make_cli.py"
    assert not re.search(r"<(str|int|float|list)\b|\w-$", made, re.MULTILINE), "types of Python, or a broken word"
