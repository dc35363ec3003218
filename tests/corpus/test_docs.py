"""docs/diagnostics.md is what the codes and the corpus make of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from llm_do.spec.codes import CODES

ROOT = Path(__file__).parent.parent.parent


def test_the_page_of_diagnostics_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "diagnostics.py", "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, "run: python scripts/diagnostics.py"


def test_every_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    assert [code for code in CODES if f"\n### {code}\n" not in page] == []
