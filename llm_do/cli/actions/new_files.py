"""Files that are created whole or not at all: on a full disk, nothing is left in the way of the next attempt."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["create_file"]


def create_file(path: Path, data: bytes) -> None:
    """Create a file with its content; if that can't be written, there is no file.

    Raises:
        FileExistsError: There is one already, which is left alone.
        OSError: It can't be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     create_file(Path(folder, "a"), b"text")
        ...     Path(folder, "a").read_bytes()
        b'text'
    """
    with path.open("xb", buffering=0) as stream:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(stream.fileno(), left) :]
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
