"""The test files of a project: `tests/**/*.test.yaml`, found, read and parsed.

`llm_do.linker.checks.case_checks` looks up the names in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes.cases import unread_file
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.diagnostics.labels import file_label
from llm_do.formats.syntax.source import KeyPath, Node, key_place_in, place_in, read_text

if TYPE_CHECKING:
    from llm_do.formats.case_file import CaseFile, TestsFile

__all__ = ["CASSETTES", "ENDING", "FOLDER", "TestSource", "read_tests"]

FOLDER = "tests"
"""The folder of a project that test files are in."""

CASSETTES = "cassettes"
"""The folder below it that their recordings are in."""

ENDING = ".test.yaml"

_NEARLY = re.compile(r"[._-]tests?\.(?:ya?ml|json)$")


@frozen
class TestSource:
    """One test file after parsing.

    Args:
        path: The file, absolute.
        label: The file as diagnostics name it.
        value: Its tests, None when nothing is usable.
        node: Its nodes.
        diagnostics: What is wrong with it.
    """

    __test__ = False

    path: Path
    label: str
    value: TestsFile | None
    node: Node | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def cases(self) -> list[tuple[CaseFile, KeyPath]]:
        """Its tests, each with its path; those that can't be used are missing, and so indexes alone don't fit."""
        listed = self.node.at(("tests",)) if self.node is not None else None
        places: dict[object, KeyPath] = {}
        for index, item in enumerate(listed.items if listed is not None else ()):
            if "name" in item.entries:
                places.setdefault(item.entries["name"].scalar, ("tests", index))
        cases = self.value.tests if self.value is not None else ()
        return [(case, places[case.name]) for case in cases if case.name in places]

    def place(self, loc: KeyPath) -> Location:
        """The place of a value."""
        return place_in(self.node, self.label, loc)

    def key_place(self, loc: KeyPath) -> Location:
        """The place of a key."""
        return key_place_in(self.node, self.label, loc)


def read_tests(root: Path) -> list[TestSource]:
    """Read a project's test files; faults don't stop it."""
    return [_read(root, path) for path in _found(root / FOLDER)]


def _read(root: Path, path: Path) -> TestSource:
    label = file_label(root, path)
    if not path.name.endswith(ENDING):
        suggestion = f"{_NEARLY.sub('', path.name)}{ENDING}"
        return TestSource(path, label, None, None, (unread_file(label, suggestion).at(Location(label)),))
    read = read_text(path, label)
    if read.text is None:
        return TestSource(path, label, None, None, read.diagnostics)
    from llm_do.formats.case_file import parse_tests

    parsed = parse_tests(read.text, label)
    return TestSource(path, label, parsed.value, parsed.node, parsed.diagnostics)


def _found(folder: Path) -> Iterator[Path]:
    """Yield the test files in a folder and below it, and those that are almost named so."""
    for place, folders, files in os.walk(folder):
        skipped = (CASSETTES,) if place == str(folder) else ()
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")) and name not in skipped)
        for name in sorted(files):
            if not name.startswith(".") and (name.endswith(ENDING) or _NEARLY.search(name)):
                yield Path(place, name)
