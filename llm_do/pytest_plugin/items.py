"""Test files and test cases as pytest sees them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from llm_do._bounded_files import read_bounded_text
from llm_do.errors import LlmDoError
from llm_do.linker.test_linker import TestedProject, check_with_tests
from llm_do.testing.cases.announcement import describe_requests
from llm_do.testing.cases.case import Case, Plan, all_cases
from llm_do.testing.cases.results import CaseResult
from llm_do.testing.cases.running import run_case
from llm_do.testing.cases.workers import Job
from llm_do.testing.reports.written_text import describe_failure
from llm_do.ui.reports.diagnostic_text import render_text
from llm_do.ui.reports.error_text import error_text

__all__ = ["CaseItem", "CasesFile", "collect_file", "describe_recording"]

_PROJECTS = pytest.StashKey[dict[Path, TestedProject]]()


def collect_file(parent: pytest.Collector, path: Path, folder: Path) -> pytest.Collector:
    """The collector of a test file of the project in a folder."""
    made = cast("CasesFile", cast("Any", CasesFile).from_parent(parent, path=path))
    made.folder = folder
    return made


def describe_recording(items: Iterable[pytest.Item]) -> list[str]:
    """What recording the cases among pytest's items will ask for."""
    jobs: dict[Path, list[Job]] = {}
    for item in items:
        if isinstance(item, CaseItem):
            jobs.setdefault(item.folder, []).append(item.job)
    return [f"llm-do: {describe_requests(folder, each)}" for folder, each in jobs.items()]


class CasesFile(pytest.File):
    """A test file; `folder` is its project's."""

    folder: Path

    def collect(self) -> Iterable[CaseItem]:
        """The cases of the file."""
        try:
            tested = _tested(self.config, self.folder)
        except LlmDoError as error:
            raise self.CollectError(error_text(error)) from error
        label = self.path.relative_to(self.folder).as_posix()
        others = {source.label for source in tested.tests} - {label}
        errors = [each for each in tested.diagnostics if each.severity == "error" and each.file not in others]
        if errors:
            raise self.CollectError(render_text(errors, lambda file: _read(tested.root / file)).rstrip())
        for case in all_cases(tested.tests):
            if case.source.label == label:
                item = cast("CaseItem", cast("Any", CaseItem).from_parent(self, name=case.name))
                item.case, item.folder = case, self.folder
                yield item


class CaseFailedError(Exception):
    """A case failed; its text is what llm-do shows."""


class CaseItem(pytest.Item):
    """A case."""

    case: Case
    folder: Path

    def runtest(self) -> None:
        """Run the case."""
        result = run_case(self.folder, self.case, self.job.plan).result
        if result.status == "skipped":
            pytest.skip(result.reason or "")
        if not result.ok:
            raise CaseFailedError(_text(result, _shown(self.folder, self.config.invocation_params.dir)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """What llm-do shows of a failed case; a traceback only of what isn't one."""
        if isinstance(excinfo.value, CaseFailedError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the case is, and its name."""
        return self.path, self.case.line - 1, self.name

    @property
    def job(self) -> Job:
        """The case, and how it is run."""
        mode = "record" if self.config.getoption("--llm-do-record") else "replay"
        replays = bool(self.config.getoption("--llm-do-replay"))
        return Job(self.case, Plan(mode, again="pytest --llm-do-record", replays=replays))


def _tested(config: pytest.Config, folder: Path) -> TestedProject:
    known = config.stash.setdefault(_PROJECTS, {})
    if folder not in known:
        known[folder] = check_with_tests(folder)
    return known[folder]


def _text(result: CaseResult, folder: Path) -> str:
    return "\n".join(describe_failure(failure, folder) for failure in result.failures)


def _shown(folder: Path, start: Path) -> Path:
    """The project's folder, relative to where pytest was started if it is below it."""
    return folder.relative_to(start) if folder.is_relative_to(start) else folder


def _read(path: Path) -> str | None:
    try:
        return read_bounded_text(path, errors="replace")
    except OSError:
        return None
