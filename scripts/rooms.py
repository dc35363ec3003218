"""Print the rooms of the house from the top, with their size and purpose: `python scripts/rooms.py`.

`lines` is all that is there to read, `code` what is left without docstrings, comments and blank lines. What takes the
lines of the large rooms is in docs/design/architecture.md, which has no figures, because they would become outdated.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design" / "architecture.md"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Room:
    """One room: a package or a module of llm_do."""

    name: str
    modules: int
    lines: int
    code: int
    purpose: str
    """The first line of its docstring."""


def rooms() -> Iterator[Room]:
    """Yield the rooms in the order of the drawing."""
    for line in PAGE.read_text(encoding="utf-8").split("```")[1].splitlines():
        if line.startswith("│"):
            yield from (_room(name.strip()) for name in line.strip("│").split("│"))


def _room(name: str) -> Room:
    place = ROOT / "llm_do" / name
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    first = (place / "__init__.py" if place.is_dir() else files[0]).read_text(encoding="utf-8")
    purpose = (ast.get_docstring(ast.parse(first)) or "").partition("\n")[0]
    lines = sum(len(text.splitlines()) for text in texts)
    return Room(name, len(files), lines, sum(map(code_lines, texts)), purpose)


def code_lines(text: str) -> int:
    """Count the lines of a module that are neither blank nor only a comment or a docstring.

    Example:
        >>> code_lines('A = 1  # one\\n\\n# Two.\\ndef f():\\n    "Says."\\n    return (\\n        A\\n    )\\n')
        5
    """
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def main() -> None:
    """Print the table."""
    found = list(rooms())
    lines = [f"{'room':<14}{'modules':>8}{'lines':>8}{'code':>8}"]
    lines += [f"{each.name:<14}{each.modules:>8}{each.lines:>8,}{each.code:>8,}  {each.purpose}" for each in found]
    modules, total, code = (sum(each) for each in zip(*((x.modules, x.lines, x.code) for x in found), strict=True))
    sys.stdout.write("\n".join([*lines, f"{'all':<14}{modules:>8}{total:>8,}{code:>8,}", ""]))


if __name__ == "__main__":
    main()
