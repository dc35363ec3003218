"""Linking a project together with its test files, which only `check` and `test` read.

A fault in a test doesn't keep the project from running, so `llm_do.linker.linker` knows nothing of them.
"""

from __future__ import annotations

from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.linker.checks.case_checks import check_cases
from llm_do.linker.linker import check_project
from llm_do.linker.python.python_files import Watch
from llm_do.linker.sources.test_files import TestSource, read_tests
from llm_do.project.project import Project

__all__ = ["TestedProject", "check_with_tests"]


@frozen
class TestedProject:
    """What linking a project with its test files found.

    Args:
        project: The project, None when it has errors of its own.
        diagnostics: Everything that was found, sorted by place.
        root: The project's folder, which the diagnostics' paths are relative to.
        tests: Its test files.
    """

    __test__ = False

    project: Project | None
    diagnostics: tuple[Diagnostic, ...]
    root: Path
    tests: tuple[TestSource, ...]

    @property
    def failed(self) -> bool:
        """Whether there are errors, of the project or of its tests."""
        return any(item.severity == "error" for item in self.diagnostics)


def check_with_tests(path: Path, *, watch: Watch | None = None) -> TestedProject:
    """Link the project at `path`, read its test files, and report everything that is wrong with them."""
    report = check_project(path, watch=watch)
    tests = tuple(read_tests(report.root))
    found = [*report.diagnostics, *(item for source in tests for item in source.diagnostics)]
    if report.project is not None:
        found += check_cases(report.project, tests)
    unique = sorted(dict.fromkeys(found), key=lambda item: (item.place, item.code, item.message))
    return TestedProject(report.project, tuple(unique), report.root, tests)
