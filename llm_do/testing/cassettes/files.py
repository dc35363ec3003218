"""Cassettes of a project: from a file to a transport and back."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._bounded_files import read_bounded
from llm_do.errors import UsageError
from llm_do.runtime.record.redaction import redactor
from llm_do.testing.cassettes.cassette_reader import parse_cassette
from llm_do.testing.cassettes.masks import Masks
from llm_do.testing.cassettes.player import CassettePlayer
from llm_do.testing.cassettes.recorder import CassetteRecorder
from llm_do.testing.cassettes.sources import Sources

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.testing.cassettes.cassette import Cassette

__all__ = ["check_target", "player_of", "read_cassette", "recorder_for"]


MOST_BYTES = 64 * 1024 * 1024
"""The largest cassette that is read."""


def read_cassette(path: Path) -> Cassette:
    """The cassette in a file.

    Raises:
        UsageError: There is none, or it can't be read.
    """
    try:
        text = read_bounded(path, MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no cassette {path}", hint="Record one with `--record`.", file=str(path)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"the cassette {path} can't be read: {reason}", hint="Record it again.", file=str(path)
        ) from error
    return parse_cassette(text, str(path))


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(4096)


def check_target(path: Path) -> None:
    """Check that a cassette can be written to a file, before requests are paid for.

    Raises:
        UsageError: It can't, or the file is something else, which would be lost.
    """
    folder = next(each for each in (path.parent, *path.parent.absolute().parents) if os.path.lexists(each))
    fault, hint = "", "Choose another file."
    try:
        if path.is_dir():
            fault = "it is a folder"
        elif path.is_file() and path.stat().st_size and b'"cassette"' not in _beginning(path):
            fault, hint = "it is another file, which would be lost", "Choose another name, or delete it first."
        elif path.exists() and not path.is_file():
            fault = "it is not a file"
        else:
            # Only writing shows whether a file system is read-only or full.
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(bytes(4096))
                probe.flush()
                os.fsync(probe.fileno())
    except OSError as error:
        fault = f"{folder} {'is not a folder' if isinstance(error, NotADirectoryError) else error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            fault, hint = "there is no space left", "Free some, or choose a file elsewhere."
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            fault, hint = (
                f"{folder} can't be written in",
                "Choose a file elsewhere, or change the folder's permissions.",
            )
    if fault:
        raise UsageError(f"the cassette {path} can't be written: {fault}", hint=hint, file=str(path))


def player_of(
    path: Path, project: Project, *, again: str, ignore: Sequence[str] = (), tools: Sequence[str] | None = None
) -> CassettePlayer:
    """A transport that answers a project's requests from a file.

    `again` is the command that records it again, `ignore` are patterns besides the project's, and `tools` replaces its
    `cassette.tools`.
    """
    masks = Masks(project.root, redactor(), (*project.cassette.ignore, *ignore))
    named = project.cassette.tools if tools is None else tools
    return CassettePlayer(read_cassette(path), masks, Sources(project), again, named)


def recorder_for(project: Project, ignore: Sequence[str] = (), tools: Sequence[str] | None = None) -> CassetteRecorder:
    """A transport that records a project's requests, and the results of `tools`."""
    from llm_do import __version__

    masks = Masks(project.root, redactor(), (*project.cassette.ignore, *ignore))
    return CassetteRecorder(masks, __version__, project.cassette.tools if tools is None else tools)
