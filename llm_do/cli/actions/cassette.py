"""`--record` and `--replay`: the cassette that a session's model requests go into or come from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.text.sanitizer import shell_words
from llm_do.text.words import with_count

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.record.transport import Transport
    from llm_do.testing.cassettes.recorder import CassetteRecorder

__all__ = ["SessionCassette"]


class SessionCassette:
    """What a session records or replays, if it does either.

    Args:
        project: The project.
        record: The file to record in.
        replay: The file to replay.

    Raises:
        UsageError: Both are set, or the cassette can't be read or written.
    """

    def __init__(self, project: Project, record: str | None, replay: str | None) -> None:
        self.transport: Transport | None = None
        self._recorder: CassetteRecorder | None = None
        self._file = Path(record or replay or "")
        if record is not None and replay is not None:
            raise UsageError("--record and --replay exclude each other", hint="Keep one of them.")
        if record is None and replay is None:
            return
        if not (record or replay):
            raise UsageError(
                "the cassette's file name is empty", hint="Name a file, such as `tests/main.cassette.json`."
            )
        from llm_do.testing.cassettes.files import check_target, player_of, recorder_for

        if replay is not None:
            self.transport = player_of(self._file, project, again=_recording_command(sys.argv[1:]))
        else:
            check_target(self._file)
            self.transport = self._recorder = recorder_for(project)

    def discard(self, notice: Callable[[str], None]) -> None:
        """Say that a run that was interrupted isn't recorded: a cassette with half of it would only miss."""
        if self._recorder is not None:
            notice(f"nothing was recorded: the run was interrupted, and {self._file} is as it was")

    def save(self, notice: Callable[[str], None]) -> None:
        """Write what was recorded.

        Raises:
            UsageError: The file can't be written.
        """
        if self._recorder is None:
            return
        from llm_do.testing.cassettes.recorder import write_cassette

        cassette = self._recorder.cassette()
        if not cassette.exchanges:
            notice(f"nothing was recorded: no model was asked, and {self._file} is as it was")
            return
        write_cassette(self._file, cassette)
        count = len(cassette.exchanges)
        notice(f"recorded {with_count(count, 'request')} in {self._file}; replay them with --replay")


def _recording_command(args: Sequence[str]) -> str:
    """The command line that records what this one replays.

    Example:
        >>> _recording_command(["run", ".", "--replay", "a.json"])
        'llm-do run . --record a.json'
    """
    words = ["--record" if word == "--replay" else word.replace("--replay=", "--record=", 1) for word in args]
    return f"llm-do {shell_words(words)}"
