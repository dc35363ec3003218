"""Keeps the files that a run replaces, for `llm-do undo`: set around its entry, so for all that it calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from llm_do.files.changes.keeping import Change, Keeper, is_own, kept_by
from llm_do.files.changes.run_keeper import RunKeeper

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.context.session import Session

__all__ = ["keeping_changes"]

UNKEPT = "this run changes files, and nothing of them is kept for `llm-do undo`, because it isn't recorded"


@contextlib.contextmanager
def keeping_changes(session: Session, ctx: CallContext) -> Generator[None]:
    """Keep what is replaced during the block if the run is recorded on disk; else say once that nothing is kept."""
    run = ctx.run
    in_memory = session.config.store is None and session.project.threads.store == "memory"
    keeper: Keeper
    if run.recording is None or in_memory:
        keeper = _NoKeeper(session.config.notice)
    else:
        if run.keeper is None:
            run.keeper = RunKeeper(session.project.root, run.run_id, say=ctx.warn)
        keeper = run.keeper
    with kept_by(keeper):
        yield


class _NoKeeper:
    """Keeps nothing, and says so at the first change.

    Args:
        notice: Shows a notice to a person.
    """

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._said = False

    @contextlib.contextmanager
    def changing(self, *changes: Change) -> Generator[None]:
        """Let the changes be made."""
        yield
        if not self._said and not all(is_own(change.place.path) for change in changes):
            self._said = True
            self._notice(UNKEPT)
