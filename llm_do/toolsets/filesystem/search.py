"""Search files for a regular expression, with limits on time, memory and results: the expression comes from a model."""

from __future__ import annotations

import re
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import BinaryIO

from llm_do.errors import ToolError
from llm_do.files.glob_patterns import PathPattern, expand_braces
from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.tree import Tree
from llm_do.text.bounded_patterns import BoundedPattern, PatternRefusedError, compile_bounded
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.filesystem.text_ranges import is_binary

__all__ = ["search"]

_MAX_MATCHES = 200
_MAX_LINE = 300
_MAX_MATCHED_LINE = 20_000
_HEAD = 8192
_MAX_FILE = 5_000_000
_MAX_SECONDS = 10.0
_MAX_SECONDS_A_LINE = 1.0
_SPECIAL = re.compile(r"[^\w ,;:<>=/@%'\"!-]")


@dataclass
class _Search:
    expression: BoundedPattern
    pattern: str
    until: float
    lines: list[str] = field(default_factory=list[str])
    skipped: int = 0
    stopped: str | None = None

    def file(self, stream: BinaryIO, path: str) -> None:
        data = stream.read(_HEAD)
        if is_binary(data):
            return
        data += stream.read(_MAX_FILE + 1 - len(data))
        if len(data) > _MAX_FILE:
            self.skipped += 1
            return
        text = data.decode("utf-8-sig", "replace")
        if self.pattern not in text and not _SPECIAL.search(self.pattern):
            return
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
            line = line.removesuffix("\r")
            found = self._match(line[:_MAX_MATCHED_LINE])
            if found is not None:
                self.lines.append(f"{display_path(path)}:{number}: {_excerpt(line, found)}")
            if self.over():
                return

    def over(self) -> bool:
        if len(self.lines) >= _MAX_MATCHES:
            self.stopped = f"the first {_MAX_MATCHES} matches; narrow the pattern, path or glob for others"
        elif time.monotonic() > self.until:
            self.stopped = f"stopped after {_MAX_SECONDS:g} seconds; narrow path or glob"
        return self.stopped is not None

    def _match(self, line: str) -> int | None:
        try:
            return self.expression.find(line, _MAX_SECONDS_A_LINE)
        except TimeoutError:
            raise ToolError(
                f"the pattern {display_path(self.pattern, 100)} takes too long to match",
                hint="Write it without nested repetition.",
            ) from None
        except PatternRefusedError as fault:
            raise ToolError(f"the pattern {display_path(self.pattern, 100)} {fault}", hint=fault.hint) from fault


def search(protection: Protection, pattern: str, path: str, glob: str, ignore: tuple[str, ...]) -> str:
    """Search the text files in a folder, or one file, line by line; skip files that may not be read.

    Return the matches in order as lines `path:line: text`, with a note in brackets if there may be more. An invalid or
    slow pattern, or a path that can't be read, raises `ToolError`.
    """
    run = _Search(_compiled(pattern), pattern, time.monotonic() + _MAX_SECONDS)
    root = protection.root
    protection.reading(root.trail(path))
    start = root.stat(path)
    if start.kind == "folder":
        tree = Tree(root, path, ignore=ignore, max_seconds=_MAX_SECONDS)
        _search_tree(run, tree, protection, glob, "" if start.path == "." else start.path + "/")
    else:
        with root.open(path, guard=protection.reading) as stream:
            run.file(stream, start.path)
            if run.skipped:
                raise FileRefusedError(
                    display_path(path),
                    f"it is larger than the {_MAX_FILE:,} bytes that are searched",
                    reason="too_large",
                )
    notes = [run.stopped] if run.stopped else []
    if run.skipped:
        notes.append(f"{run.skipped} files larger than {_MAX_FILE:,} bytes were not searched")
    lines = run.lines or ([] if notes else [f"[nothing matches {display_path(pattern, 100)}]"])
    return "\n".join([*lines, *([f"[{'; '.join(notes)}]"] if notes else [])])


def _search_tree(run: _Search, tree: Tree, protection: Protection, glob: str, base: str) -> None:
    globs = [PathPattern.parse(each) for each in expand_braces(glob.removeprefix("./") or "**/*")]
    anywhere = "/" not in glob
    with closing(iter(tree)) as files:
        for found in files:
            below = found.path.removeprefix(base)
            name = below.rpartition("/")[2]
            selected = any(each.matches_name(name) if anywhere else each.matches(below) for each in globs)
            if found.kind != "file" or not selected or not protection.may_read(found.path):
                continue
            try:
                with found.open() as stream:
                    run.file(stream, found.path)
            except (OSError, FileRefusedError):
                # The file was removed, changed or made unreadable since it was listed.
                continue
            if run.over():
                return
    run.stopped = tree.stopped


def _compiled(pattern: str) -> BoundedPattern:
    try:
        return compile_bounded(pattern)
    except PatternRefusedError as fault:
        raise ToolError(f"the pattern {display_path(pattern, 100)} {fault}", hint=fault.hint) from fault


def _excerpt(line: str, at: int) -> str:
    if len(line) <= _MAX_LINE:
        return line
    start = max(min(at - _MAX_LINE // 3, len(line) - _MAX_LINE), 0)
    return f"{'...' if start else ''}{line[start : start + _MAX_LINE]}{'...' if start + _MAX_LINE < len(line) else ''}"
