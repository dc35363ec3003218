"""Linking a project together with its test files, which only `check` and `test` read.

A fault in a test doesn't keep the project from running, so `llm_do.linker.linker` knows only which names they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.linker.analysis.survey import LeftOut
from llm_do.linker.linker import LinkReport, check_project
from llm_do.linker.python.python_files import Watch
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.linker.sources.project_root import ProjectLocation, locate_project
from llm_do.linker.sources.test_files import TestSource, read_tests
from llm_do.project.project import Project

__all__ = ["TestedProject", "check_variant", "check_with_tests"]


@frozen
class TestedProject:
    """What linking a project with its test files found.

    Args:
        project: The project, None when it has errors of its own.
        diagnostics: Everything that was found, sorted by place.
        root: The project's folder, which the diagnostics' paths are relative to.
        tests: Its test files.
        left_out: What is missing from the project because its folder is closed.
    """

    __test__ = False

    project: Project | None
    diagnostics: tuple[Diagnostic, ...]
    root: Path
    tests: tuple[TestSource, ...]
    left_out: LeftOut | None = None

    @property
    def failed(self) -> bool:
        """Whether there are errors, of the project or of its tests."""
        return any(item.severity == "error" for item in self.diagnostics)


def check_variant(path: Path | ProjectLocation, agents: Mapping[str, str], *, watch: Watch | None = None) -> LinkReport:
    """Link the project at `path` with other files, named relative to its folder, instead of those of some agents."""
    located = locate_project(path) if isinstance(path, Path) else path
    stand_ins = {name: located.root / file for name, file in agents.items()}
    return check_project(replace(located, stand_ins=stand_ins), watch=watch)


def check_with_tests(path: Path | ProjectLocation | ProjectFiles, *, watch: Watch | None = None) -> TestedProject:
    """Link the project at `path`, or one whose files have been read, with its tests; report everything that is wrong.

    Every variant that a matrix makes of the project with other agent files is linked too.
    """
    located = locate_project(path) if isinstance(path, Path) else path
    tests = tuple(read_tests(located.root))
    if isinstance(located, ProjectFiles):
        located.located = place = replace(located.located, tested=_entries(tests))
    else:
        located = place = replace(located, tested=_entries(tests))
    report = check_project(located, watch=watch)
    found = [*report.diagnostics, *(item for source in tests for item in source.diagnostics)]
    # Cases speak of tools, which aren't all known where Python files were left out.
    if tests and report.project is not None and report.left_out is None:
        from llm_do.linker.checks.case_checks import check_cases

        found += (faults := check_cases(report.project, tests))
        for agents in _variants(tests) if not faults else ():
            found += check_variant(place, agents, watch=watch).diagnostics
    unique = sorted(dict.fromkeys(found), key=lambda item: (item.place, item.code, item.message))
    return TestedProject(report.project, tuple(unique), report.root, tests, report.left_out)


def _entries(tests: Sequence[TestSource]) -> frozenset[str]:
    """The names that cases run instead of the project's entry."""
    files = [source.value for source in tests if source.value is not None]
    written = [each.entry for file in files for each in (file.defaults, *file.tests)]
    return frozenset(name for name in written if name is not None)


def _variants(tests: Sequence[TestSource]) -> list[Mapping[str, str]]:
    """The agents' files of each column that has any, each set of them once."""
    found: list[Mapping[str, str]] = []
    for source in tests:
        for column in source.value.matrix.values() if source.value is not None else ():
            if column.agents and column.agents not in found:
                found.append(column.agents)
    return found
