"""A test case as it is run: what its file says, with defaults filled in, and the place of each part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.formats.case_file import AtMost, CaseFile, ColumnFile, DefaultsFile, ExpectFile, LiveFile, case_slug
from llm_do.linker.sources.test_files import CASSETTES, ENDING, FOLDER, TestSource

if TYPE_CHECKING:
    from llm_do.formats.memory_scopes import MemoryScope
    from llm_do.formats.syntax.source import KeyPath
    from llm_do.runtime.approval.broker import Answer, ApprovalMode

__all__ = ["Case", "Column", "Mode", "Plan", "all_cases", "columns_of"]

Mode: TypeAlias = Literal["replay", "record", "live"]
"""Where answers come from: recordings; models, whose answers are recorded; or models."""

LONGEST = 300.0
"""Seconds that a run may take if its case doesn't say."""


@frozen
class Column:
    """A variant of the project that cases are run in.

    Args:
        name: Its name; None for the project as it is.
        model: The model of every agent.
        models: The models of single agents.
        agents: Files, relative to the project's folder, that stand in for those of single agents.
    """

    name: str | None = None
    model: str | Sequence[str] | None = None
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    agents: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, name: str, file: ColumnFile) -> Column:
        """A column of a file's `matrix`."""
        return cls(name, file.model, dict(file.models), dict(file.agents))


@frozen
class Plan:
    """How cases are run.

    Args:
        mode: Where answers come from.
        again: The command that records what is missing.
        model: The model of every agent, whatever files say.
        models: The models of single agents, whatever files say.
        repeat: How many times each case is run live; None for what it says.
        column: The variant of the project.
        replays: Whether each run is replayed at once, which fails if the code isn't the same twice.
        env_file: A file with keys and variables, by its absolute path: cases run in another folder.
    """

    mode: Mode = "replay"
    again: str = "llm-do test --record-missing"
    model: str | Sequence[str] | None = None
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    repeat: int | None = None
    column: Column = field(default_factory=Column)
    replays: bool = False
    env_file: str | None = None

    @property
    def names_models(self) -> bool:
        """Whether it has models of its own, so that recordings of others don't apply."""
        return bool(self.model or self.models)

    def repeats(self, case: Case) -> int:
        """How many times a case is run."""
        return (self.repeat or case.live.repeat) if self.mode == "live" else 1


@frozen
class Case:
    """One case.

    Args:
        source: Its file.
        loc: Where it is in the file.
        written: What the file says of it.
        defaults: What the file says of all its cases.
    """

    source: TestSource
    loc: KeyPath
    written: CaseFile
    defaults: DefaultsFile

    @property
    def name(self) -> str:
        """Its name."""
        return self.written.name

    @property
    def file(self) -> Path:
        """Its file, relative to the project's folder."""
        return Path(PurePosixPath(self.source.label))

    @property
    def id(self) -> str:
        """File and name."""
        return f"{self.source.label}::{self.name}"

    @property
    def line(self) -> int:
        """The line it begins at."""
        return self.source.place(self.loc).line

    @property
    def expect(self) -> ExpectFile:
        """What is expected."""
        return self.written.expect

    @property
    def entry(self) -> str | None:
        """What is run; None for the project's entry."""
        return self.written.entry or self.defaults.entry

    @property
    def thread(self) -> str | None:
        """The id of its thread."""
        return self.written.thread or self.defaults.thread

    @property
    def user(self) -> str | None:
        """The id of its user."""
        return self.written.user or self.defaults.user

    @property
    def remembered(self) -> Mapping[MemoryScope, Sequence[str]]:
        """What its agents remember before the run."""
        return self.written.remembered or self.defaults.remembered

    @property
    def inputs(self) -> list[object]:
        """The inputs, of which there are several in a conversation."""
        return list(self.written.inputs) if self.written.inputs is not None else [self.written.input]

    @property
    def approvals(self) -> Mapping[str, Answer] | Answer | ApprovalMode:
        """The answers to requests for approval, as `play` takes them."""
        answer = self.defaults.answer if self.written.answer is None else self.written.answer
        if answer is None or answer == "nobody":
            return "prompt"  # the words that a model reads are then those of a run without a terminal
        if isinstance(answer, str):
            return _answer(answer)
        return {tool: _answer(each) for tool, each in answer.items()}

    @property
    def copies(self) -> bool:
        """Whether it runs in a copy of the project."""
        return (self.written.copy_ or self.defaults.copy_) != "none"

    @property
    def ignore(self) -> Sequence[str]:
        """Patterns of text in requests that counts as equal."""
        options = [each.cassette for each in (self.defaults, self.written) if each.cassette is not None]
        return [pattern for each in options for pattern in each.ignore]

    @property
    def recorded_tools(self) -> Sequence[str] | None:
        """Names or patterns of tools whose results are recorded; None for those of the project."""
        options = [each.cassette for each in (self.written, self.defaults) if each.cassette is not None]
        return next((each.tools for each in options if each.tools), None)

    @property
    def live(self) -> LiveFile:
        """How it is run live."""
        return self.written.live or self.defaults.live or LiveFile()

    @property
    def model(self) -> str | Sequence[str] | None:
        """The model of every agent."""
        return self.written.model or self.defaults.model

    @property
    def models(self) -> Mapping[str, str]:
        """The models of single agents."""
        return {**self.defaults.models, **self.written.models}

    @property
    def seconds(self) -> float:
        """How long a run may take."""
        found = self.limit("seconds")
        return LONGEST if found is None else found[0]

    def limit(self, name: Literal["steps", "tool_calls", "usd", "seconds"]) -> tuple[float, int] | None:
        """A limit of `at_most` with its line: of the expectation, the case or the defaults, in this order."""
        places: list[tuple[AtMost | None, KeyPath]] = [
            (self.expect.at_most, (*self.loc, "expect", "at_most")),
            (self.written.at_most, (*self.loc, "at_most")),
            (self.defaults.at_most, ("defaults", "at_most")),
        ]
        for limits, loc in places:
            value = cast("float | None", limits.model_dump()[name]) if limits is not None else None
            if value is not None:
                return value, self.source.key_place((*loc, name)).line
        return None

    def line_of(self, *loc: str | int) -> int:
        """The line of a part of `expect`, or of the nearest part around it."""
        return self.source.key_place((*self.loc, "expect", *loc)).line

    def cassette(self, column: str | None = None) -> Path:
        """Its cassette, relative to the project's folder: one for each column."""
        stem = PurePosixPath(self.source.label).relative_to(FOLDER).as_posix().removesuffix(ENDING)
        # No slug has an @, so no test can be named like another one's column.
        name = case_slug(self.name) if column is None else f"{case_slug(self.name)}@{column}"
        return Path(FOLDER, CASSETTES, stem, f"{name}.json")


def all_cases(tests: Sequence[TestSource]) -> list[Case]:
    """The cases of test files, in their order."""
    return [
        Case(source, loc, written, source.value.defaults)
        for source in tests
        if source.value is not None
        for written, loc in source.cases
    ]


def columns_of(tests: Sequence[TestSource]) -> dict[str, list[Column]]:
    """The matrix columns of each test file, by its label."""
    return {
        source.label: [Column.of(name, column) for name, column in source.value.matrix.items()]
        for source in tests
        if source.value is not None
    }


def _answer(word: str) -> Answer:
    return cast("Answer", "unanswered" if word == "nobody" else word)
