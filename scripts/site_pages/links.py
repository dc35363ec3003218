"""Where the repository's pages and files are on the site, and links between them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from scripts.pages.markdown import FENCED, anchor

__all__ = ["DIAGNOSTICS", "Places", "page_of"]

DIAGNOSTICS = "docs/diagnostics.md"
"""The page that becomes a page for each code."""

_ELSEWHERE: Mapping[str, str] = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
_PROSE = re.compile(r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))|\]\((?P<to>[^)\s]+)\)", re.DOTALL)


def page_of(path: str) -> str:
    """Return the page of the site that a page or example of the repository becomes.

    Example:
        >>> page_of("docs/running.md"), page_of("examples/greeter"), page_of("CHANGELOG.md")
        ('running.md', 'examples/greeter.md', 'changelog.md')
    """
    if path in _ELSEWHERE:
        return _ELSEWHERE[path]
    return path.removeprefix("docs/") if path.endswith(".md") else f"{path.removeprefix('docs/')}.md"


@dataclass
class Places:
    """The places of the repository's pages and files on the site."""

    root: Path
    """The repository."""
    pages: set[str]
    """The paths in it that have a page of their own: Markdown files, and folders of examples."""
    files: set[str] = field(default_factory=set)
    """The other files that a page links to."""
    faults: list[str] = field(default_factory=list)
    """What is wrong with the links so far."""

    def rewrite(self, text: str, path: str, page: str | None = None) -> str:
        """Rewrite a page's links for the site.

        Args:
            text: The Markdown.
            path: The path of its file in the repository.
            page: The page of the site it is on; by default the one that its path says.
        """
        here = page or page_of(path)

        def link(found: re.Match[str]) -> str:
            return found[0] if found["code"] else f"]({self._target(found['to'], path, here)})"

        parts: list[str] = []
        end = 0
        for block in FENCED.finditer(text):
            parts += [_PROSE.sub(link, text[end : block.start()]), block[0]]
            end = block.end()
        return "".join([*parts, _PROSE.sub(link, text[end:])])

    def _target(self, to: str, path: str, here: str) -> str:
        if "://" in to:
            return to
        name, _, part = to.partition("#")
        target = os.path.normpath(PurePosixPath(path).parent / name) if name else path
        found, part = self._place(target, part)
        if found is None:
            self.faults.append(f"{path} links to {to}, which is neither a page nor a file")
            return to
        if found == here and part:
            return f"#{part}"
        return os.path.relpath(found, PurePosixPath(here).parent) + (f"#{part}" if part else "")

    def _place(self, target: str, part: str) -> tuple[str | None, str]:
        """Return the page or file of the site that has a path of the repository, and the anchor on it."""
        if target == DIAGNOSTICS and re.fullmatch(r"ld\d+", part):
            return f"diagnostics/{part.upper()}.md", ""
        if target in self.pages:
            return page_of(target), part
        owner = next((each for each in PurePosixPath(target).parents if str(each) in self.pages), None)
        if owner is not None:
            name = str(PurePosixPath(target).relative_to(owner))
            return page_of(str(owner)), "" if name == "README.md" else anchor(name)
        if (self.root / target).is_file():
            self.files.add(target)
            return target.removeprefix("docs/"), part
        return None, part
