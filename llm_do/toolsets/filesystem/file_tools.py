"""The file tools as methods for one root; their docstrings are the descriptions that the model reads.

`llm_do.toolsets.filesystem.file_toolset` turns them into a toolset and decides about their calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any

from pydantic import Field

from llm_do.files.changes.file_diff import is_complete, unified_diff
from llm_do.files.changes.file_states import content_digest
from llm_do.files.glob_patterns import PathPattern, expand_braces
from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.tree import Tree, TreeEntry
from llm_do.runtime.tools.current_tool import APPROVED_BASIS
from llm_do.runtime.tools.traits import Preview
from llm_do.text.words import with_count
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.filesystem.search import search
from llm_do.toolsets.filesystem.text_edit import apply_edit
from llm_do.toolsets.filesystem.text_ranges import MAX_EDITED, ReadResult, decode_text, read_characters, read_lines

__all__ = ["Count", "FileTools", "Positive", "list_below"]

_MAX_LISTED = 1000
_MAX_LISTED_CHARACTERS = 60_000
_NOTHING_YET = "[there is nothing yet: the root folder doesn't exist]"
# Parallel edits of one file wait for each other, whichever root they come through; two files rarely share a lock.
_LOCKS = tuple(threading.Lock() for _ in range(64))

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class FileTools:
    """The tools for one root; no call changes the object.

    `ignore` has rules for files that aren't listed or searched, as the lines of a `.gitignore` file at the root.
    """

    def __init__(self, protection: Protection, ignore: tuple[str, ...] = ()) -> None:
        self.protection = protection
        self.ignore = ignore

    @property
    def root(self) -> Root:
        """The root."""
        return self.protection.root

    def read_file(
        self,
        path: str,
        offset: Count = 0,
        limit: Positive | None = None,
        line_numbers: bool = False,
        max_chars: Positive | None = None,
    ) -> str | ReadResult:
        """Read a text file, by lines. A note in brackets at the end says if the file continues.

        Args:
            path: Path of the file, relative to the root folder.
            offset: Lines to skip first.
            limit: Lines to read at most, 2000 if left out.
            line_numbers: Put its number and a tab before each line.
            max_chars: Count in characters instead of lines: read so many, after skipping offset characters.
        """
        with self.root.open(path, guard=self.protection.reading) as stream:
            if max_chars is not None:  # 0.3's way of reading: see llm_do.compat
                return read_characters(stream, path, offset, max_chars)
            return read_lines(stream, path, offset, limit, numbered=line_numbers)

    def write_file(self, path: str, content: str) -> str:
        """Write a whole text file, new or in place of the old one. Folders on the way are made.

        Args:
            path: Path of the file, relative to the root folder.
            content: All of its text.
        """
        data = _encoded(content, path)
        with self._lock(path):
            new = self.root.write(path, data, guard=self.protection.writing, expected=APPROVED_BASIS.get())
        return f"{'Made' if new else 'Replaced'} {display_path(path)}, {with_count(len(data), 'byte')}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace one piece of a text file.

        Args:
            path: Path of the file, relative to the root folder.
            old: The exact text to replace; it must be in the file once.
            new: The text to put there.
        """
        with self._lock(path):
            before = self._text(path)
            data = _encoded(apply_edit(before, old, new, path), path)
            self.root.write(path, data, guard=self.protection.writing, expected=APPROVED_BASIS.get())
        return f"Edited {display_path(path)}"

    def list_files(self, path: str = ".", pattern: str = "**/*") -> str:
        """List files and folders, in order; folders end in a slash. What .gitignore files name is left out.

        Args:
            path: The folder, relative to the root folder.
            pattern: Glob relative to that folder: `*` is one level, `**/*.py` any depth.
        """
        if self._nothing_yet(path):
            return _NOTHING_YET
        found, note = list_below(self, path, pattern)
        lines = [display_path(each.path) + ("/" if each.kind == "folder" else "") for each in found]
        if not lines and not note:
            return f"[nothing in {display_path(path)} matches {display_path(pattern)}]"
        return "\n".join([*lines, *([f"[{note}]"] if note else [])])

    def search_files(self, pattern: str, path: str = ".", glob: str = "**/*") -> str:
        """Search text files for a regular expression, line by line. Results are `path:line: text`.

        Args:
            pattern: The regular expression; `(?i)` at its start ignores case.
            path: The folder or file, relative to the root folder.
            glob: Which files: `*.py` at any depth, `src/**/*.py` relative to the folder.
        """
        if self._nothing_yet(path):
            return _NOTHING_YET
        return search(self.protection, pattern, path, glob, self.ignore)

    def make_directory(self, path: str) -> str:
        """Make a folder, and those above it.

        Args:
            path: Path of the folder, relative to the root folder.
        """
        new = self.root.make_directory(path, guard=self.protection.writing)
        return f"Made {display_path(path)}" if new else f"{display_path(path)} was there already"

    def move_file(self, source: str, target: str) -> str:
        """Move or rename a file. Nothing may have the new name yet; folders on the way are made.

        Args:
            source: Path of the file, relative to the root folder.
            target: Its new path, with its name.
        """
        self.root.move(source, target, guard=self.protection.writing)
        return f"Moved {display_path(source)} to {display_path(target)}"

    def delete_file(self, path: str) -> str:
        """Delete one file.

        Args:
            path: Path of the file, relative to the root folder.
        """
        self.root.delete(path, guard=self.protection.writing)
        return f"Deleted {display_path(path)}"

    def preview_of_write(self, args: Mapping[str, Any]) -> Preview:
        """Return the change that `write_file` with these arguments would make; no diff without two texts to compare."""
        path = args["path"]
        basis = ""
        try:
            before = self._bytes(path)
            basis = self.root.digest(path) if before and len(before) > MAX_EDITED else content_digest(before)
            text = decode_text(before, path) if before is not None else args["content"]
            return _preview(unified_diff(text, args["content"], path), basis, "content")
        except FileRefusedError:
            return Preview(None, basis)

    def preview_of_edit(self, args: Mapping[str, Any]) -> Preview:
        """Return the change that `edit_file` with these arguments would make; no diff if it would fail."""
        path = args["path"]
        try:
            before = self._bytes(path) or b""
            text = decode_text(before, path)
            diff = unified_diff(text, apply_edit(text, args["old"], args["new"], path), path)
        except FileRefusedError:
            return Preview(None, "")
        return _preview(diff, content_digest(before), "old", "new")

    def check_write(self, args: Mapping[str, Any]) -> None:
        """Raise `FileRefusedError` if `write_file` with these arguments would fail."""
        _encoded(args["content"], args["path"])
        self.root.check_write(args["path"], guard=self.protection.writing)

    def check_edit(self, args: Mapping[str, Any]) -> None:
        """Raise `FileRefusedError` if `edit_file` with these arguments would fail."""
        path = args["path"]
        _encoded(apply_edit(self._text(path), args["old"], args["new"], path), path)
        self.root.check_write(path, guard=self.protection.writing)

    def check_move(self, args: Mapping[str, Any]) -> None:
        """Raise `FileRefusedError` if `move_file` with these arguments would fail."""
        self.root.check_move(args["source"], args["target"], guard=self.protection.writing)

    def check_delete(self, args: Mapping[str, Any]) -> None:
        """Raise `FileRefusedError` if `delete_file` with these arguments would fail."""
        self.root.check_delete(args["path"], guard=self.protection.writing)

    def _bytes(self, path: str) -> bytes | None:
        """Return a file's content, one byte more than can be compared at most; None if there is no file."""
        try:
            return self.root.read(path, limit=MAX_EDITED + 1, guard=self.protection.writing)
        except FileRefusedError as error:
            if error.reason == "missing":
                return None
            raise

    def _nothing_yet(self, path: str) -> bool:
        """Whether the path is a root that doesn't exist yet and that a write will make, so it counts as empty."""
        return self.root.is_pending and self.root.trail(path)[-1] == "."

    def _text(self, path: str) -> str:
        return decode_text(self.root.read(path, limit=MAX_EDITED + 1, guard=self.protection.writing), path)

    def _lock(self, path: str) -> threading.Lock:
        place = os.path.normpath(f"{self.root.spellings[-1]}/{self.root.trail(path)[-1]}")
        return _LOCKS[hash(place) % len(_LOCKS)]


def _preview(diff: str, basis: str, *arguments: str) -> Preview:
    """A diff that shows these arguments, unless a part of it is omitted."""
    return Preview(diff or None, basis, shown=arguments if is_complete(diff) else ())


def list_below(tools: FileTools, path: str, pattern: str) -> tuple[list[TreeEntry], str]:
    """List what matches a glob in a folder, in order, with a note if the list is incomplete.

    An empty glob matches everything; a folder that can't be read, or an invalid glob, raises `FileRefusedError`.
    """
    globs = [PathPattern.parse(each) for each in expand_braces(pattern.removeprefix("./") or "**/*")]
    depths = [glob.depth for glob in globs]
    depth = None if None in depths else max(filter(None, depths), default=1)
    tools.protection.reading(tools.root.trail(path))
    start = tools.root.stat(path).path
    base = "" if start == "." else start + "/"
    tree = Tree(tools.root, path, ignore=tools.ignore, depth=depth)
    listed: list[TreeEntry] = []
    size = 0
    with closing(iter(tree)) as files:
        for found in files:
            if not any(glob.matches(found.path.removeprefix(base)) for glob in globs):
                continue
            if len(listed) == _MAX_LISTED or size > _MAX_LISTED_CHARACTERS:
                return listed, f"the first {len(listed):,}; narrow path or pattern for others"
            listed.append(found)
            size += len(found.path)
    return listed, f"only a part was searched: {tree.stopped}" if tree.stopped else ""


def _encoded(text: str, path: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileRefusedError(
            display_path(path), f"character {error.start} of the text is half of a surrogate pair", reason="not_text"
        ) from error
