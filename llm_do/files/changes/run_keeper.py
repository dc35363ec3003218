"""`RunKeeper`: keeps what one run replaces, before it does so."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import cached_property
from pathlib import Path

from llm_do.files.changes.change_record import FileKey, json_line
from llm_do.files.changes.file_states import MISSING, FileState, read_state
from llm_do.files.changes.keeping import Change, Place, is_own
from llm_do.files.changes.kept_folder import MOST_BYTES, KeptFolder
from llm_do.files.local_folder import FOLDER
from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError, refusal_for

__all__ = ["RunKeeper", "prune", "size_text"]

_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EEXIST, errno.ENOENT}
"""Nothing can be kept in this folder at all, unlike on a disk that is full."""

_PRUNED_EVERY = 60.0
"""Seconds between two times that one process looks for what is too old."""

_changing = threading.RLock()
"""Changes that are kept are made one after the other, so that what is kept is what is replaced."""

_pruned: dict[Path, float] = {}
"""When this process looked last, by the project's folder."""


class RunKeeper:
    """Keeps what a run replaces, from its first change on; a run that is resumed adds to what is there.

    A file that is too large isn't kept, and neither is any file if the folder can't be written to; the change is made
    nevertheless, and `say` is called with a sentence. If the disk is full, the change is refused.

    Args:
        root: The project's folder.
        id: The run's id, or the undo's.
        of: What an undo undoes.
        say: Called, from any thread, with what isn't kept.
        strict: Whether a change is refused if what it replaces can't be kept.
    """

    def __init__(
        self,
        root: Path,
        id: str,
        *,
        of: str | None = None,
        say: Callable[[str], None] = lambda _: None,
        strict: bool = False,
    ) -> None:
        self.id = id
        self._kept = KeptFolder(root)
        self._header = {"run": id, "of": of}
        self._say = say
        self._strict = strict
        self._known: set[FileKey] | None = None
        self._last = 0
        self._bytes = 0
        self._calls: list[str] = []
        self._broken = False

    @cached_property
    def _base(self) -> str:
        # Found at the first change: most runs make none, and each part of the path is a call of the system.
        return os.path.realpath(self._kept.root)

    @contextlib.contextmanager
    def changing(self, *changes: Change) -> Generator[None]:
        """Keep what is there before the block, in which the changes are made."""
        concerned = [(self._key(change.place), change) for change in changes]
        concerned = [(key, change) for key, change in concerned if key is not None]
        if not concerned or self._broken:
            yield
            return
        with _changing, contextlib.ExitStack() as held:
            numbers, first = self._begin(concerned, held)
            try:
                yield
            except Exception:
                if numbers:
                    self._withdraw(numbers, first)
                raise
            if numbers:
                self._end(numbers, concerned)

    def note_call(self, text: str, id: str) -> bool:
        """Note a call whose effects can't be undone, for people who undo the run.

        Args:
            text: The call in one line.
            id: Its id.

        Returns:
            Whether to `write_calls` now; before the run changes a file there is nothing to undo.
        """
        self._calls.append(json_line({"call": text, "id": id, "time": time.time()}))
        return bool(self._known) and not self._broken

    def write_calls(self) -> None:
        """Write down the calls that were noted."""
        with _changing, contextlib.suppress(OSError), self._kept.adding():
            self._write_calls()

    def _begin(
        self, changes: Sequence[tuple[FileKey, Change]], held: contextlib.ExitStack
    ) -> tuple[list[int], set[FileKey]]:
        """Keep what is there, and write down what will be; afterwards both are on disk.

        Returns the numbers of the changes, and the files whose first change it is.
        """
        label = display_path(changes[0][0].label)
        if self._known is None:
            prune(self._kept, self.id)
        try:
            held.enter_context(self._kept.adding())
            self._open()
            texts, notes, numbers = list[str](), list[str](), list[int]()
            for key, change in changes:
                found, unkept = self._before(key, change.place)
                self._last += 1
                numbers.append(self._last)
                data = {"n": self._last, "path": key.path, "root": key.root, "before": found.to_dict()}
                data |= {"after": change.after.to_dict(), "time": time.time()}
                texts.append(json_line(data | ({"unkept": unkept} if unkept else {})))
                if unkept:
                    notes.append(f"{display_path(key.label)} can't be restored by `llm-do undo`: {unkept}")
            self._kept.append(self.id, "".join(texts))
        except OSError as error:
            if self._strict or error.errno not in _NOT_WRITABLE:
                why = f"what it replaces can't be kept for `llm-do undo`: {refusal_for(label, error).why}"
                raise FileRefusedError(label, why, reason="failed") from error
            self._broken = True
            self._say(
                f"nothing that this run replaces is kept for `llm-do undo`: {FOLDER} can't be written to "
                f"({refusal_for(label, error).why})"
            )
            return [], set()
        assert self._known is not None
        first = {key for key, _ in changes} - self._known
        self._known |= first
        for note in notes:
            self._say(note)
        self._write_calls()
        return numbers, first

    def _before(self, key: FileKey, place: Place) -> tuple[FileState, str]:
        """What is there, kept unless it was at an earlier change; and why it isn't, if so."""
        assert self._known is not None
        label = display_path(key.label)
        if key in self._known:
            return MISSING, ""
        try:
            found, data = read_state(place.folder, place.name, label)
        except PermissionError:
            found, data = FileState("file"), None
            unkept = "it can't be read"
        else:
            unkept = self._keep(found, data)
        if unkept and self._strict:
            raise FileRefusedError(label, f"its content would be lost: {unkept}", reason="failed")
        return found, unkept

    def _keep(self, found: FileState, data: bytes | None) -> str:
        """Keep the content of a file; returns why it isn't kept."""
        if found.kind != "file":
            return "it is a device, a pipe or a socket" if found.kind == "other" else ""
        if data is None:
            return f"it is too large to be kept, with {size_text(found.size)}"
        if self._bytes + len(data) > MOST_BYTES and not self._kept.has(found.digest):
            return f"this run has replaced more than the {size_text(MOST_BYTES)} that are kept"
        self._bytes += self._kept.add(data)
        return ""

    def _end(self, numbers: Sequence[int], changes: Sequence[tuple[FileKey, Change]]) -> None:
        """Write down what is there now; if that fails, both what was and what is there count as this run's."""
        with contextlib.suppress(OSError):
            texts: list[str] = []
            for number, (_, change) in zip(numbers, changes, strict=True):
                after, place = change.after, change.place
                if after.kind == "file":
                    mode = place.folder.lstat(place.name).st_mode & 0o777
                    after = FileState("file", after.digest, after.size, mode)
                texts.append(json_line({"done": number, "after": after.to_dict()}))
            self._kept.append(self.id, "".join(texts), lasting=False)

    def _withdraw(self, numbers: Sequence[int], first: set[FileKey]) -> None:
        """Write down that changes weren't made; a file whose first change it was hasn't been changed yet."""
        with contextlib.suppress(OSError):
            self._kept.append(self.id, "".join(json_line({"failed": number}) for number in numbers), lasting=False)
            assert self._known is not None
            self._known -= first

    def _open(self) -> None:
        """Read what earlier attempts at the run have kept, or begin a record."""
        if self._known is not None:
            return
        record = self._kept.record(self.id)
        if record is None:
            self._kept.append(self.id, json_line({**self._header, "time": time.time()}))
        found = record.files if record is not None else {}
        self._known = set(found)
        self._bytes = sum(each.before.size for each in found.values() if not each.unkept)
        self._last = record.last if record is not None else 0

    def _write_calls(self) -> None:
        """Write down the calls that were noted, by whoever holds the lock."""
        if self._calls:
            calls, self._calls = self._calls, []
            with contextlib.suppress(OSError):
                self._kept.append(self.id, "".join(calls), lasting=False)

    def _key(self, place: Place) -> FileKey | None:
        """Which file is changed; None if it is one of our own."""
        if is_own(place.path):
            return None
        base, root = self._base, None
        if not _is_below(place.path, base):
            base = root = place.root
        path = os.path.relpath(place.path, base).replace(os.sep, "/")
        return None if path == "." else FileKey(path, root)


def prune(kept: KeptFolder, except_for: str) -> None:
    """Drop the oldest of what is kept beyond its bounds, once in a while."""
    now = time.monotonic()
    if now - _pruned.get(kept.root, -_PRUNED_EVERY) >= _PRUNED_EVERY:
        _pruned[kept.root] = now
        kept.prune(except_for)


def size_text(size: int) -> str:
    """Return a size for people.

    Example:
        >>> size_text(900), size_text(40_000_000)
        ('900 bytes', '38.1 MB')
    """
    return f"{size:,} bytes" if size < 1024 * 1024 else f"{size / 1024 / 1024:,.1f} MB"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
