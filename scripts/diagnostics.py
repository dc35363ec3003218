"""Writes docs/diagnostics.md: `python scripts/diagnostics.py`; `--check` only says so when it is out of date.

The words come from `llm_do/diagnostics/codes`, the examples from the corpus of wrong projects in tests/corpus, and what
llm-do says of them from llm-do.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from llm_do.diagnostics.codes import CODES, Code  # noqa: E402
from llm_do.ui.reports.diagnostic_text import render_text  # noqa: E402
from tests.corpus.cases import Case, cases, linked, whole  # noqa: E402

TARGET = ROOT / "docs" / "diagnostics.md"

HEAD = """\
# Diagnostics

`llm-do check` finds what is wrong with a project before anything runs, and says all of it at once: where, why, and
what to do. Each finding has a code that never changes its meaning. Errors keep a project from running (exit code 3);
warnings do so under `--strict`. `--format json` and `--format github` are for programs. Paths are shown from the
current folder, where a terminal and GitHub look for them; in JSON they are relative to the project.

Each entry has an example: what is wrong with a file (`-`) and what puts it right (`+`), and what llm-do says of it.

This page is made by `python scripts/diagnostics.py`; every example on it is checked.
"""

_AROUND = 4
"""Lines shown around a change."""

BLOCKS = {
    "LD1": "Reading files",
    "LD2": "Names and references",
    "LD3": "Python files",
    "LD4": "Tools and toolsets",
    "LD5": "Flows",
    "LD6": "Approval rules",
    "LD7": "Models and environment",
    "LD8": "Unused things",
}


def page() -> str:
    """The whole page."""
    first: dict[str, Case] = {}
    for case in cases():
        first.setdefault(case.code, case)
    parts = [HEAD, _contents()]
    block = ""
    for code, row in CODES.items():
        if code[:3] != block:
            block = code[:3]
            parts.append(f"## {BLOCKS[block]}\n")
        parts.append(_entry(code, row, first.get(code)))
    return "\n".join(parts)


def _contents() -> str:
    rows = [f"| [{code}](#{code.lower()}) | {row.severity} | {row.title} |" for code, row in CODES.items()]
    return "\n".join(["| code | severity | |", "|---|---|---|", *rows]) + "\n"


def _entry(code: str, row: Code, case: Case | None) -> str:
    lines = [f"### {code}", "", f"**{row.title}** ({row.severity}). {row.explanation}", ""]
    if case is None or row.wrong:
        lines += [*_fenced("\n".join(_changed(row.wrong, row.fixed)), "diff"), ""]
    else:
        for name, file in case.fixed.items():
            before = case.files.get(name) or whole(case).get(name)
            lines += [f"`{name}`" + (" is removed:" if file.kind == "absent" else ""), ""]
            lines += [*_fenced("\n".join(_changed(before.text if before else "", file.text)), "diff"), ""]
    if case is not None:
        lines += ["llm-do says:", "", *_fenced(_said(case), "text")]
    return "\n".join([*lines, ""])


def _changed(wrong: str, right: str) -> list[str]:
    """What is wrong and what is right, as a difference without its head."""
    lines = difflib.unified_diff(wrong.splitlines(), right.splitlines(), n=_AROUND, lineterm="")
    return ["" if line.startswith("@@") else line for line in lines][3:]


def _said(case: Case) -> str:
    """What llm-do prints of a case."""
    files = whole(case)

    def read(name: str) -> str | None:
        file = files.get(name)
        data = file.data if file is not None and file.kind != "link" else b""
        return data.decode(errors="replace") if len(data) < 10_000 else None

    return render_text(linked(case).diagnostics, read, width=100).rstrip("\n")


def _fenced(text: str, language: str = "") -> list[str]:
    fence = "```" if "```" not in text else "````"
    return [f"{fence}{language}", text, fence]


def main() -> int:
    """Write the page, or compare it."""
    made = page()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == made:
        return 0
    if "--check" in sys.argv[1:]:
        sys.stderr.write(f"{TARGET.relative_to(ROOT)} is out of date: run python scripts/diagnostics.py\n")
        return 1
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
