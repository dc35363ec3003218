"""`.llm-do/undo`: what runs have replaced, in a folder that only its owner can read.

`files` has the contents, each once, named by its digest; `records` has a file of JSON lines for each run or undo
(`change_record`). Whoever adds to them holds the lock together with others, whoever removes from them holds it alone.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import time
from collections.abc import Generator, Iterable
from pathlib import Path

from llm_do.files.changes.change_record import ChangeRecord, read_record
from llm_do.files.changes.file_states import LARGEST, content_digest
from llm_do.files.folders import READ, Folder, kind_at, open_folder
from llm_do.files.local_folder import FOLDER, make_folder

__all__ = ["MOST_BYTES", "MOST_DAYS", "MOST_RECORDS", "KeptFolder"]

MOST_BYTES = 256 * 1024 * 1024
"""The most bytes that are kept for one run; and of earlier runs together, when a run begins to keep."""

MOST_RECORDS = 1000
"""The most runs that are kept."""

MOST_DAYS = 30
"""Days after which what a run replaced is dropped."""

_UNDO = "undo"
_LARGEST_RECORD = 64 * 1024 * 1024
_APPEND = (
    os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
) | getattr(os, "O_BINARY", 0)
_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class KeptFolder:
    """What is kept for the runs of one project.

    Args:
        root: The project's folder.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     KeptFolder(Path(folder)).records()
        []
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._added_to: set[str] = set()

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.root / FOLDER / _UNDO

    @contextlib.contextmanager
    def adding(self) -> Generator[None]:
        """Create the folder if it doesn't exist, and keep others from removing anything during the block.

        Raises:
            OSError: It can't be written to, or is a link.
        """
        make_folder(self.root)
        with self._opened(create=True) as folder, _locked(folder, alone=False):
            yield

    def has(self, digest: str) -> bool:
        """Whether a content is kept."""
        try:
            with self._opened("files", digest[:2]) as folder:
                return kind_at(folder, digest) == "file"
        except OSError:
            return False

    def add(self, data: bytes) -> int:
        """Keep a content, and return how many bytes that took; it is on disk then.

        Raises:
            OSError: It can't be written.
        """
        digest = content_digest(data)
        with self._opened("files", digest[:2], create=True) as folder:
            if kind_at(folder, digest) is not None:
                return 0
            partial = f"{digest}.{secrets.token_hex(4)}"
            try:
                with os.fdopen(folder.open(partial, _NEW | getattr(os, "O_BINARY", 0), 0o600), "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                folder.rename(partial, digest, folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    folder.unlink(partial)
                raise
            _sync(folder)
        return len(data)

    def content(self, digest: str) -> bytes | None:
        """Return a content; None if it isn't kept any longer, or is damaged."""
        try:
            with self._opened("files", digest[:2]) as folder, os.fdopen(folder.open(digest, READ), "rb") as stream:
                data = stream.read(LARGEST + 1)
        except OSError:
            return None
        return data if content_digest(data) == digest else None

    def append(self, record_id: str, text: str, *, lasting: bool = True) -> None:
        """Add lines to a record; afterwards they are on disk if they have to last.

        Raises:
            OSError: They can't be written, and aren't there.
        """
        name = _file_name(record_id)
        with self._opened("records", create=True) as folder:
            is_new = kind_at(folder, name) is None
            number = folder.open(name, _APPEND, 0o600)
            try:
                size = os.fstat(number).st_size
                # A line that a process could not complete before it was killed ends with this one's first line.
                begin = "" if is_new or record_id in self._added_to else "\n"
                try:
                    _write(number, f"{begin}{text}".encode())
                    if lasting:
                        os.fsync(number)
                except OSError:
                    self._added_to.discard(record_id)
                    with contextlib.suppress(OSError):
                        os.ftruncate(number, size)
                    raise
                self._added_to.add(record_id)
            finally:
                os.close(number)
            if is_new:
                _sync(folder)

    def record(self, record_id: str) -> ChangeRecord | None:
        """Return a record by its complete id; None if there is none."""
        try:
            with self._opened("records") as folder:
                return _read(folder, _file_name(record_id))
        except OSError:
            return None

    def records(self) -> list[ChangeRecord]:
        """Return all records that can be read, the one with the latest change last."""
        try:
            with self._opened("records") as folder:
                found = [_read(folder, entry.name) for entry in folder.entries()]
        except OSError:
            return []
        return sorted(filter(None, found), key=lambda record: (record.changed, record.id))

    def drop(self, ids: Iterable[str]) -> None:
        """Remove records, and contents that no other record needs.

        Raises:
            OSError: They can't be removed.
        """
        try:
            with self._opened() as folder, _locked(folder, alone=True):
                with self._opened("records") as records:
                    for name in map(_file_name, ids):
                        with contextlib.suppress(FileNotFoundError):
                            records.unlink(name)
                self._sweep()
        except FileNotFoundError:
            return

    def drop_runs(self, runs: Iterable[str]) -> None:
        """Remove what runs have replaced, and what undoing them has.

        Raises:
            OSError: It can't be removed.
        """
        records = self.records()
        dropped = {record.id for record in records}.intersection(runs)
        while more := {record.id for record in records if record.of in dropped} - dropped:
            dropped |= more
        if dropped:
            self.drop(dropped)

    def find(self, prefix: str) -> list[ChangeRecord]:
        """Return the record with an id, or those whose ids begin with it."""
        records = self.records()
        exact = [record for record in records if record.id == prefix]
        return exact or [record for record in records if record.id.startswith(prefix)]

    def prune(self, except_for: str) -> None:
        """Remove the oldest records beyond what is kept, if no one is adding to them just now."""
        with contextlib.suppress(OSError), self._opened() as folder, _locked(folder, alone=True, wait=False):
            records = [record for record in self.records() if record.id != except_for]
            oldest = time.time() - MOST_DAYS * 86400
            kept = [record for record in records if record.changed >= oldest][-(MOST_RECORDS - 1) :]
            sizes = self._sizes()
            while sum(sizes.get(digest, 0) for digest in _digests(kept)) > MOST_BYTES:
                kept.pop(0)
            names = {_file_name(record.id) for record in kept} | {_file_name(except_for)}
            with self._opened("records") as opened:
                for entry in list(opened.entries()):
                    if entry.name not in names:
                        opened.unlink(entry.name)
            self._sweep()

    def _sweep(self) -> None:
        """Remove contents that no record needs."""
        needed = _digests(self.records())
        for digest in self._sizes():
            if digest not in needed:
                with contextlib.suppress(OSError), self._opened("files", digest[:2]) as folder:
                    folder.unlink(digest)

    def _sizes(self) -> dict[str, int]:
        """The size of each content, parts of contents included."""
        found: dict[str, int] = {}
        with contextlib.suppress(OSError), self._opened("files") as files:
            for entry in list(files.entries()):
                with contextlib.suppress(OSError), self._opened("files", entry.name) as folder:
                    found |= {each.name: folder.lstat(each.name).st_size for each in folder.entries()}
        return found

    @contextlib.contextmanager
    def _opened(self, *names: str, create: bool = False) -> Generator[Folder]:
        """Open a folder in it, never through a link."""
        with contextlib.ExitStack() as opened:
            folder = open_folder(self.root)
            opened.callback(folder.close)
            for name in (FOLDER, _UNDO, *names):
                if create and kind_at(folder, name) is None:
                    with contextlib.suppress(FileExistsError):
                        folder.mkdir(name, 0o700)
                if kind_at(folder, name) == "link":
                    raise OSError(errno.ELOOP, f"{name} is a link")
                folder = folder.child(name)
                opened.callback(folder.close)
            yield folder


def _file_name(record_id: str) -> str:
    """The name of a record's file: an id may be any text."""
    return f"{hashlib.sha256(record_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.jsonl"


def _read(folder: Folder, name: str) -> ChangeRecord | None:
    if not name.endswith(".jsonl"):
        return None
    try:
        with os.fdopen(folder.open(name, READ), "rb") as stream:
            return read_record(stream.read(_LARGEST_RECORD))
    except OSError:
        return None


def _digests(records: Iterable[ChangeRecord]) -> set[str]:
    return {each.before.digest for record in records for each in record.files.values() if not each.unkept}


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def _sync(folder: Folder) -> None:
    with contextlib.suppress(OSError):  # some file systems can't sync a folder
        folder.sync()


@contextlib.contextmanager
def _locked(folder: Folder, *, alone: bool, wait: bool = True) -> Generator[None]:
    number = folder.open("lock", _LOCK, 0o600)
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(number, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(number)
