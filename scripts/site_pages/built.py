"""What a built site must be: links and anchors have targets, titles differ, and nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

__all__ = ["check_built"]

_LOADS = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("form", "action")}
_IN_CSS = re.compile(r"url\(\s*['\"]?(?:https?:)?//[^)]*\)|@import\s[^;]*//[^;]*")


@dataclass
class _Document(HTMLParser):
    """The anchors and references of a page."""

    anchors: set[str] = field(default_factory=set)
    references: set[tuple[bool, str]] = field(default_factory=set)
    """What is loaded (true) or linked to."""

    title: str | None = None
    """The first heading. The search shows it alone where pages can't be fetched, as those of a folder can't."""

    _in_title: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a tag's anchor and reference."""
        if tag == "h1" and self.title is None:
            self.title, self._in_title = "", True
        elif tag == "a":
            self._in_title = False
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src", "action") and value:
                self.references.add(((tag, name) in _LOADS, value))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of the first heading."""
        self._in_title = self._in_title and tag != "h1"

    def handle_data(self, data: str) -> None:
        """Collect the first heading."""
        if self._in_title and self.title is not None:
            self.title += data


def check_built(folder: Path) -> list[str]:
    """Check the pages of a built site.

    Args:
        folder: The site.

    Returns:
        What is wrong, a line each: dead links, dead anchors, titles that two pages have, and what a page or a style
        loads from elsewhere.
    """
    pages: dict[Path, _Document] = {}
    for file in sorted(folder.rglob("*.html")):
        pages[file] = _Document()
        pages[file].feed(file.read_text(encoding="utf-8"))
    faults: list[str] = []
    titled: dict[str, Path] = {}
    for file, page in pages.items():
        name = file.relative_to(folder)
        first = titled.setdefault(page.title, name) if page.title else name
        if first != name:
            faults.append(f"{name}: has the title of {first}, {page.title!r}, and the search shows no more of them")
        for loads, reference in sorted(page.references):
            if fault := _fault(pages, file, loads, reference):
                faults.append(f"{name}: {fault}")
    for file in sorted(folder.rglob("*.css")):
        loaded = _IN_CSS.findall(file.read_text(encoding="utf-8"))
        faults += [f"{file.relative_to(folder)}: loads {each} from elsewhere" for each in loaded]
    return faults


def _fault(pages: dict[Path, _Document], file: Path, loads: bool, reference: str) -> str | None:
    """Return what is wrong with a reference."""
    if re.match(r"(?:[a-z]+:)?//", reference):
        return f"loads {reference} from elsewhere" if loads else None
    if re.match(r"[a-z]+:", reference):
        return None
    path, _, anchor = reference.partition("#")
    path = path.partition("?")[0]
    target = Path(os.path.normpath(file.parent / unquote(path))) if path else file
    if not target.is_file():
        return f"links to {reference}, which doesn't exist"
    if anchor and target in pages and unquote(anchor) not in pages[target].anchors:
        return f"links to {reference}, and that page has no such anchor"
    return None
