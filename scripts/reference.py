"""Writes the pages of docs/reference: `python scripts/reference.py`; `--check` only names those that are out of date.

What they say comes from the code: the schemas of files, the tools of toolsets, the classes of events and results, the
docstrings of what is public, and runs of the examples.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.pages import api, project_files, runs, toolsets  # noqa: E402

FOLDER = ROOT / "docs" / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "agent-files.md": project_files.agent_files,
    "project-json.md": project_files.project_json,
    "toolset-options.md": toolsets.toolset_options,
    "events.md": runs.events,
    "results.md": runs.results,
    "python.md": api.python,
}
"""Each page, and what makes its text."""

NOTE = "\nThis page is made by `python scripts/reference.py`.\n"


def page(name: str) -> str:
    """The text of a page.

    Args:
        name: Its file's name.
    """
    return PAGES[name]() + NOTE


def main() -> int:
    """Write the pages, or compare them."""
    changed = 0
    for name in PAGES:
        made, target = page(name), FOLDER / name
        if target.exists() and target.read_text(encoding="utf-8") == made:
            continue
        changed += 1
        if "--check" in sys.argv[1:]:
            sys.stderr.write(f"{target.relative_to(ROOT)} is out of date: run python scripts/reference.py\n")
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            target.write_text(made, encoding="utf-8")
    return 1 if changed and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
