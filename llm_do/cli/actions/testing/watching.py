"""`llm-do test --watch`: runs the tests, and after each change of a file those that the file can reach."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do._startup.process import resume_collector
from llm_do.cli.actions.testing.action import LinkedTests, ReportTarget, link_tests, run_linked
from llm_do.cli.process.streams import Results, warn
from llm_do.errors import UsageError
from llm_do.linker.sources.project_root import locate_project
from llm_do.testing.cases.case import all_cases, columns_of
from llm_do.testing.cases.suite import select
from llm_do.testing.watching.file_watch import FileWatch
from llm_do.testing.watching.reach import Connections, Reach
from llm_do.text.sanitizer import sanitize
from llm_do.ui.reports.error_text import error_text

if TYPE_CHECKING:
    from llm_do.cli.actions.testing.options import TestOptions

__all__ = ["watch_tests"]

_CLEAR = "\x1b[H\x1b[2J"
_MOST_NAMES = 3
_INTERRUPTED = 130


def watch_tests(options: TestOptions, results: Results, path: Path, target: ReportTarget) -> int:
    """Run tests until a person ends it with Ctrl-C; returns the exit code of the last run.

    Raises:
        UsageError: There are no tests to begin with.
    """
    return _Watching(options, results, path, target).run()


class _Watching:
    def __init__(self, options: TestOptions, results: Results, path: Path, target: ReportTarget) -> None:
        self._options = options
        self._results = results
        self._path = path
        self._target = target
        self._root = locate_project(path).root
        self._watch = FileWatch(self._root, wait=time.sleep)
        self._reach: Reach | None = None
        self._pending: set[Path] = set()
        self._last_code = 0

    def run(self) -> int:
        resume_collector()  # each run links anew, and it may watch for days
        code = 0
        try:
            code = self._start()
            while code != _INTERRUPTED and not self._results.closed:
                changed = self._changed_meanwhile()
                if not changed:
                    self._results.write("watching for changes; Ctrl-C ends\n")
                    changed = self._watch.wait_for_changes()
                code = self._again(changed)
        except KeyboardInterrupt:
            pass
        return code

    def _start(self) -> int:
        linked = self._link()
        return 3 if linked is None else self._test(linked)

    def _test(self, linked: LinkedTests, only: Collection[str] | None = None) -> int:
        self._last_code = run_linked(linked, self._options, self._results, self._target, only=only)
        return self._last_code

    def _again(self, changed: set[Path]) -> int:
        """Run what changes can reach; returns the exit code, that of the last run if there is nothing to run."""
        self._pending |= changed
        before, only = self._reach, None
        self._clear()
        self._results.write(f"{self._names(changed)} changed\n")
        try:
            linked = self._link()
            if linked is None:
                return 3
            if before is not None and self._reach is not None:
                chosen = {case.id for case in select(all_cases(linked.tests), self._options.text)}
                only = chosen & (before.of(self._pending) | self._reach.of(self._pending)) if chosen else None
            self._pending.clear()
            if only is not None and not only:
                self._results.write("no test can be affected\n")
                return self._last_code
            return self._test(linked, only)
        except UsageError as error:  # the last test was deleted, say; more changes may mend it
            warn(error_text(error))
            return error.exit_code

    def _link(self) -> LinkedTests | None:
        """Link the project anew, and find out what leads to what; None if it has errors, which are shown."""
        linked = link_tests(self._path, self._options)
        if linked is None:
            return None
        connections = Connections.from_dict(linked.facts["connections"])
        self._watch.watch_also(self._root / label for label in connections.files)
        self._reach = Reach(self._root, connections, all_cases(linked.tests), columns_of(linked.tests))
        return linked

    def _changed_meanwhile(self) -> set[Path]:
        """What people changed while tests ran; data may have been written by the tests themselves."""
        reach, changed = self._reach, self._watch.changed()
        return {path for path in changed if reach is None or reach.is_source(path) or reach.is_recording(path)}

    def _clear(self) -> None:
        self._results.write(_CLEAR if self._results.is_terminal else "\n")

    def _names(self, changed: set[Path]) -> str:
        labels = sorted(
            path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)
            for path in changed
        )
        more = f" and {len(labels) - _MOST_NAMES} more" if len(labels) > _MOST_NAMES else ""
        return f"{', '.join(map(sanitize, labels[:_MOST_NAMES]))}{more}"
