"""docs/diagnostics.md is what the codes and the corpus make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.diagnostics.known_codes import CODES
from scripts.diagnostics import page

PAGE = (Path(__file__).parents[2] / "docs" / "diagnostics.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_diagnostics_is_up_to_date() -> None:
    assert page() == PAGE, "run: python scripts/diagnostics.py"


def test_every_code_is_on_the_page() -> None:
    assert [code for code in CODES if f"\n### {code}\n" not in PAGE] == []
