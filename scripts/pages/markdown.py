"""Markdown that reads well as text too: tables, code, headings and their anchors."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["FENCED", "anchor", "code", "fenced", "headings", "joined", "json_text", "prose", "table"]

_WIDTH = 100

FENCED = re.compile(r"^(`{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^\1$", re.MULTILINE | re.DOTALL)
"""A block of code, with what stands behind its fence."""

_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that a repository's page gives a heading.

    Example:
        >>> anchor("`runtime.budget` and so on")
        'runtimebudget-and-so-on'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(page: str) -> list[tuple[str, str]]:
    """A page's headings, each with its anchor: a number tells later ones from the first of the same name.

    Example:
        >>> headings("# `Tool`\\n\\n# `tool`\\n")
        [('`Tool`', 'tool'), ('`tool`', 'tool-1')]
    """
    seen: Counter[str] = Counter()
    found: list[tuple[str, str]] = []
    for heading in _HEADING.findall(FENCED.sub("", page)):
        name = anchor(heading)
        found.append((heading, f"{name}-{seen[name]}" if seen[name] else name))
        seen[name] += 1
    return found


def code(text: str) -> str:
    """Text as code within a line.

    Example:
        >>> code("a `b`")
        '`` a `b` ``'
    """
    line = " ".join(text.split("\n"))
    if "`" not in line:
        return f"`{line}`"
    return f"`` {line} ``"


def fenced(text: str, language: str = "") -> str:
    """Text as a block of code."""
    fence = "```" if "```" not in text else "````"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def joined(parts: Sequence[str], last: str = "or") -> str:
    """Parts as an enumeration.

    Example:
        >>> joined(["a", "b", "c"])
        'a, b or c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def json_text(value: object, indent: int = 0) -> str:
    """A value as JSON: on one line where it fits, else a line for each part.

    Example:
        >>> json_text({"a": [1, 2], "b": {}})
        '{"a": [1, 2], "b": {}}'
    """
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= _WIDTH or not value or not isinstance(value, dict | list):
        return line
    inner = " " * (indent + 2)
    if isinstance(value, list):
        parts = [inner + json_text(each, indent + 2) for each in value]
        return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
    parts = [f"{inner}{json.dumps(key)}: {json_text(each, indent + 2)}" for key, each in value.items()]
    return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"


def prose(text: str) -> str:
    """A docstring's text on one line a paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that are empty in every row are left out."""
    body = [[cell.replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows]
    kept = [number for number in range(len(head)) if any(row[number] for row in body)]
    lines = [
        [head[number] for number in kept],
        ["---"] * len(kept),
        *([row[number] for number in kept] for row in body),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
