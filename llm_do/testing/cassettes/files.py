"""Cassettes of a project: from a file to a transport and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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

__all__ = ["player_of", "read_cassette", "recorder_for"]


def read_cassette(path: Path) -> Cassette:
    """The cassette in a file.

    Raises:
        UsageError: There is none, or it can't be read.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no cassette {path}", hint="Record one with `--record`.", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the cassette {path} can't be read: {error}", hint="Record it again.", file=str(path)
        ) from error
    return parse_cassette(text, str(path))


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
