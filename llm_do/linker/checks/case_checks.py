"""Checks of test files against the project: whether the agents, tools and functions that they name exist."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from llm_do._bounded_files import read_bounded
from llm_do.diagnostics.codes import cases as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.codes.names import missing_file
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.case_file import ContentFile, DefaultsFile, ExpectFile
from llm_do.formats.syntax.source import KeyPath
from llm_do.linker.analysis.inventory import AgentTools, Inventory
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.open_names import may_be_listed
from llm_do.linker.analysis.rule_subjects import unknown_caller
from llm_do.linker.checks.model_checks import check_model
from llm_do.linker.checks.rule_checks import find_idle_pattern
from llm_do.linker.sources.file_lists import list_files
from llm_do.linker.sources.test_files import TestSource
from llm_do.models.aliases import known_aliases
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.project.flow_spec import every_agent
from llm_do.project.project import Project

__all__ = ["check_cases", "check_file"]


def check_cases(project: Project, sources: Sequence[TestSource]) -> list[Diagnostic]:
    """Check the test files of a project that links."""
    checks = _Checks(project)
    for source in sources:
        checks.check(source)
    return checks.names.faults


def check_file(reference: str, root: Path, source: Path) -> Path | None:
    """The file of a `python` check: beside the test file, or in the project's folder; None if there is none."""
    return next((path for path in _candidates(reference, root, source) if path.is_file()), None)


def _candidates(reference: str, root: Path, source: Path) -> list[Path]:
    path = reference.partition(":")[0]
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        return []
    return [source.parent / path, root / path]


class _Checks:
    """The checks of all test files of a project; `names` has what they find."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.names = Names(
            taken=dict(project.registry), root=project.root, aliases=known_aliases(project.model_aliases, project.root)
        )
        self._functions: dict[Path, list[str]] = {}

    def check(self, source: TestSource) -> None:
        """Check one file."""
        if source.value is None:
            return
        self._options(source, source.value.defaults, ("defaults",))
        for case, loc in source.cases:
            self._options(source, case, loc)
            self._expectations(source, case.expect, (*loc, "expect"))
        for name, column in source.value.matrix.items():
            at: KeyPath = ("matrix", name)
            self._models(source, column.models, at)
            for agent, path in column.agents.items():
                self._stand_in(source, (*at, "agents", agent), agent, path)

    def _options(self, source: TestSource, options: DefaultsFile, loc: KeyPath) -> None:
        if options.entry is not None:
            self.names.look_up(options.entry, ("agent", "flow", "tool"), "an entry", source.place((*loc, "entry")))
        self._models(source, options.models, loc)
        for tool in options.answer if isinstance(options.answer, dict) else ():
            if not self._may_be_called(tool):
                known = sorted({each.name for own in self._tools for each in own.tools})
                problem = problems.answer_for_unknown_tool(tool, known)
                self._report(problem, source.key_place((*loc, "answer", tool)))

    def _stand_in(self, source: TestSource, loc: KeyPath, agent: str, path: str) -> None:
        """Check a file that is read instead of an agent's own."""
        known = self.names.look_up(agent, ("agent",), "an agent", source.key_place(loc))
        if known is not None and known.place is not None and known.place.file.endswith(".py"):
            self._report(problems.agent_in_python(agent, known.place.file), source.key_place(loc))
        faults = list_files(self.project.root, [(path, source.place(loc))])[1]
        if not faults and not (self.project.root / path).is_file():
            faults = [missing_file(path, path, ()).at(source.place(loc))]
        self.names.faults += faults

    def _models(self, source: TestSource, agents: Iterable[str], loc: KeyPath) -> None:
        """Check the models' names below a path, and the names of `agents` that have one of their own."""
        for agent in agents:
            self.names.look_up(agent, ("agent",), "an agent", source.key_place((*loc, "models", agent)))
        for key in ("model", "models"):
            named = source.node.at((*loc, key)) if source.node is not None else None
            for _, node in named.walk() if named is not None else ():
                if isinstance(node.scalar, str) and node.scalar:
                    check_model(node.scalar, self.names, node.place)

    def _expectations(self, source: TestSource, expect: ExpectFile, loc: KeyPath) -> None:
        for key, texts in (("tools", expect.tools), ("never", expect.never), ("denied", expect.denied)):
            for index, text in enumerate(texts):
                self._pattern(text, source.place((*loc, key, index)), broadly=key == "never")
        if expect.output is not None:
            self._check_function(source, expect.output, (*loc, "output", "python"))
        if expect.judge is not None and expect.judge.model is not None:
            check_model(expect.judge.model, self.names, source.place((*loc, "judge", "model")))
        elif expect.judge is not None and self.project.model is None:
            self._report(problems.judge_without_model(), source.key_place((*loc, "judge")))
        for path, file in expect.files.items():
            self._check_function(source, file, (*loc, "files", path, "python"))

    def _pattern(self, text: str, place: Location, *, broadly: bool) -> None:
        try:
            pattern = parse_pattern(text)
        except PatternError:
            return
        agents = [spec.name for spec, _ in every_agent(self.project.registry)]
        if (name := unknown_caller(pattern, self.project.registry)) is not None:
            self._report(problems.unknown_agent_in_pattern(text, name, agents), place)
        elif (reason := find_idle_pattern(text, self.project, broadly=broadly)) is not None:
            self._report(problems.idle_pattern(reason), place)

    def _check_function(self, source: TestSource, content: ContentFile, loc: KeyPath) -> None:
        reference = content.python
        if reference is None:
            return
        root = self.project.root
        file = check_file(reference, root, source.path)
        if file is None:
            looked = [os.path.relpath(path, root) for path in _candidates(reference, root, source.path)]
            self._report(problems.missing_check_file(reference, dict.fromkeys(looked)), source.place(loc))
            return
        name = reference.partition(":")[2]
        if file not in self._functions:
            self._functions[file] = list(_defined(file))
        if name not in self._functions[file]:
            label = os.path.relpath(file, root)
            self._report(problems.missing_check(reference, name, label, self._functions[file]), source.place(loc))

    @cached_property
    def _tools(self) -> list[AgentTools]:
        inventory = Inventory(self.project.registry)
        return [inventory.of(spec) for spec, _ in every_agent(self.project.registry)]

    def _may_be_called(self, tool: str) -> bool:
        known = [each.name for own in self._tools for each in own.tools]
        origins = [origin for own in self._tools for origin in own.open]
        return tool in known or may_be_listed(tool, known, origins, self.project.registry)

    def _report(self, problem: Problem, place: Location) -> None:
        self.names.report(problem, place)


def _defined(file: Path) -> Iterator[str]:
    """The names that a file defines at its top level, as far as its text says; a broken one has none."""
    try:
        tree = ast.parse(read_bounded(file))
    except (OSError, SyntaxError, ValueError):
        return
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (name.asname or name.name for name in statement.names)
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
