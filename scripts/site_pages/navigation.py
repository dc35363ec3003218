"""The order and titles of the site's pages: `docs/README.md` declares them, for readers and for the site alike.

A section is a heading of the second level above a list of links; a list within the list is a page's subpages.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

__all__ = ["INDEX", "NavigationError", "Page", "Section", "navigation", "sections_of"]

INDEX = "docs/README.md"

_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<body>(?:(?!## ).*\n?)*)", re.MULTILINE)
_ITEM = re.compile(
    r"^(?P<indent> *)- \[(?P<title>[^\]]+)\]\((?P<to>[^)\s#]+)\)(?:: (?P<text>.*(?:\n(?! *- |\n).*)*))?$", re.MULTILINE
)


class NavigationError(Exception):
    """A page is in no section of `docs/README.md`, in two, or doesn't exist."""


@dataclass(frozen=True)
class Page:
    """A page as a section lists it."""

    path: str
    """The path of its file, or of an example's folder, in the repository."""
    title: str
    summary: str
    pages: list[Page] = field(default_factory=list)


@dataclass(frozen=True)
class Section:
    """A section of the index: what a reader wants, and the pages about it."""

    title: str
    text: str
    pages: list[Page]

    @property
    def slug(self) -> str:
        """The name of its page."""
        return self.title.lower().replace(" ", "-")

    def __iter__(self) -> Iterator[Page]:
        """Every page, subpages after their page."""
        for page in self.pages:
            yield page
            yield from page.pages


def sections_of(text: str) -> list[Section]:
    """Read the sections of an index.

    Args:
        text: The Markdown of `docs/README.md`.

    Returns:
        The sections that list pages, in order.

    Example:
        >>> (run,) = sections_of("## Run\\n\\nHow.\\n\\n- [Running](running.md): the command line\\n")
        >>> run.text, run.pages[0].path, run.pages[0].title, run.pages[0].summary
        ('How.', 'docs/running.md', 'Running', 'the command line')
    """
    found: list[Section] = []
    for each in _SECTION.finditer(text):
        pages: list[Page] = []
        for item in _ITEM.finditer(each["body"]):
            path = os.path.normpath(PurePosixPath(INDEX).parent / item["to"])
            page = Page(path, item["title"], " ".join((item["text"] or "").split()))
            (pages[-1].pages if item["indent"] and pages else pages).append(page)
        if pages:
            found.append(Section(each["title"], _ITEM.split(each["body"], maxsplit=1)[0].strip(), pages))
    return found


def navigation(root: Path) -> list[Section]:
    """Return the sections of a repository's index, which has each page of `docs/` once.

    Args:
        root: The repository.

    Raises:
        NavigationError: A page is missing, doesn't exist, or is listed twice.
    """
    sections = sections_of((root / INDEX).read_text(encoding="utf-8"))
    listed = Counter(page.path for section in sections for page in section)
    faults = [f"{INDEX} lists {path}, which doesn't exist" for path in listed if not (root / path).exists()]
    faults += [f"{INDEX} lists {path} {count} times: keep one" for path, count in listed.items() if count > 1]
    examples = {path.parent for path in root.glob("docs/**/SKILL.md")}
    for page in sorted(root.glob("docs/**/*.md")):
        path = page.relative_to(root).as_posix()
        if path not in listed and path != INDEX and page.parent not in examples:
            name = page.relative_to(root / "docs").as_posix()
            faults.append(
                f"{path} is in no section of {INDEX}: add `- [Title]({name}): what it is about` "
                "where a reader looks for it"
            )
    if faults:
        raise NavigationError("\n".join(faults))
    return sections
