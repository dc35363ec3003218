"""The folder for what belongs to a person, not to a project: `$XDG_STATE_HOME/llm-do`, and JSON files in it.

Only their owner may read or write these files. They are written in one step, by one process at a time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path

from llm_do._bounded_files import open_ordinary
from llm_do._home_folder import home_folder
from llm_do._startup.frozen import frozen

__all__ = ["StateFile", "state_folder"]

LIMIT = 4 * 1024 * 1024
"""The largest size that is read, in bytes."""


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder; it needn't exist.

    As the specification of these folders says, a relative `XDG_STATE_HOME` is ignored: it would lead into whatever
    folder a command runs in.

    Raises:
        OSError: There is no home folder.

    Example:
        >>> state_folder({"XDG_STATE_HOME": "/home/ann/state"}).as_posix()
        '/home/ann/state/llm-do'
    """
    named = Path((os.environ if environ is None else environ).get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named / "llm-do"
    try:
        return home_folder() / ".local" / "state" / "llm-do"
    except RuntimeError as error:
        raise OSError("there is no home folder; set XDG_STATE_HOME") from error


@frozen
class StateFile:
    """One file.

    Args:
        path: Where it is.
    """

    path: Path

    def read(self) -> str | None:
        """Return its text, None if it doesn't exist.

        Raises:
            OSError: It can't be read, is too large, or others than its owner may write or replace it.
            UnicodeDecodeError: It isn't text in UTF-8.
        """
        try:
            stream = open_ordinary(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with stream:
            if _others_write(os.fstat(stream.fileno())):
                raise OSError("others may write it")
            self._check_folders()
            data = stream.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise OSError(f"it is larger than {LIMIT} bytes")
        return data.decode("utf-8-sig")

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Let no other process change the file during the block.

        Raises:
            OSError: The folder can't be written to, or others may write to it.
        """
        for folder in reversed(self.path.parents):
            folder.mkdir(exist_ok=True, mode=0o700)
        self._check_folders()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), flags, 0o600)
        try:
            with contextlib.suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def write(self, text: str) -> None:
        """Replace the file; a reader finds the old text or the new one.

        Raises:
            OSError: It can't be written.
        """
        number, partial = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, self.path)  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
            raise

    def _check_folders(self) -> None:
        """Raise if others could put another file here: a person's own may also be one that came with a clone."""
        if not hasattr(os, "getuid"):
            return
        top = state_folder() if state_folder() in self.path.parents else self.path.parent
        folders = [each for each in self.path.parents if each.is_relative_to(top)]
        for folder in folders:
            if _others_write(os.stat(folder)):  # noqa: PTH116
                raise OSError(f"others may write to {folder}")
        for folder in Path(os.path.realpath(folders[-1])).parents:
            mode = os.stat(folder).st_mode  # noqa: PTH116
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise OSError(f"others may write to {folder}")


def _others_write(info: os.stat_result) -> bool:
    return hasattr(os, "getuid") and (info.st_uid != os.getuid() or bool(info.st_mode & 0o022))
