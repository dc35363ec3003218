"""CONTRIBUTING.md: the files and make targets it names exist. CHANGELOG.md: what is added stands in its part."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tables import each_row

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PATH = re.compile(r"(?:llm_do|tests|scripts|docs|benchmarks)(?:/[\w*.-]+)+")
PATHS = sorted({found[0].rstrip(".") for found in PATH.finditer(TEXT)})
PLACEHOLDERS = re.compile(r"NAME|GROUP|SUBJECT")


@each_row("path", PATHS)
def test_a_path_on_the_page_exists(path: str) -> None:
    assert list(ROOT.glob(PLACEHOLDERS.sub("*", path)))


def test_every_make_target_on_the_page_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert set(re.findall(r"^make (\w+)", TEXT, re.MULTILINE)) <= targets


def test_every_heading_of_the_changes_is_followed_by_an_empty_line() -> None:
    """What is added right below one most likely belongs to the part before it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^#+ .*\n(?!\n)", text, re.MULTILINE) == []
