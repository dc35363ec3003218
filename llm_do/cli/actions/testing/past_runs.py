"""`llm-do test --from RUN`: a test of a run that has happened, shown as a diff before it is written."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do import __version__
from llm_do.cli.actions.project_store import existing_store
from llm_do.cli.actions.records.stored_runs import found_run, gone_line
from llm_do.cli.process.streams import write_stderr
from llm_do.errors import UsageError
from llm_do.files.root import Root
from llm_do.linker.sources.project_root import ProjectLocation, locate_project
from llm_do.linker.sources.test_files import ENDING, FOLDER, read_tests
from llm_do.project.project import Project
from llm_do.runtime.record.events.event import event_from_dict
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.stored_records import Filter
from llm_do.testing.cases.case import Plan, all_cases
from llm_do.testing.cases.past_run import PastRun
from llm_do.testing.cases.results import SuiteResult
from llm_do.testing.cases.running import run_case
from llm_do.testing.cases.workspace import open_workspace
from llm_do.testing.cassettes.masks import Masks
from llm_do.testing.reports.text_report import failure_lines, summary_line
from llm_do.text.generated_ids import short_run_id
from llm_do.ui.terminal.screen import paint, wants_color

if TYPE_CHECKING:
    from llm_do.cli.process.streams import Results
    from llm_do.testing.cases.results import CaseResult
    from llm_do.testing.reports.text_report import Paint

__all__ = ["make_test"]

_MOST_LINES = 120
_WIDTH = 80


def make_test(
    path: Path, run: str, results: Results, *, place: str | None, env_file: str | None, no_color: bool
) -> int:
    """Make a test of a recorded run, show it, and write it, on a terminal if a person agrees.

    Args:
        path: The project's folder, manifest or `.agent` file.
        run: The run's id, or a prefix of it.
        results: Where it is shown.
        place: Where the run was recorded; None for the project's store.
        env_file: A file with keys and variables.
        no_color: Don't use colours.

    Returns:
        The exit code: 0, or 1 if the test doesn't pass as the project is now.

    Raises:
        UsageError: There is no such run, or no test can be made of it.
    """
    project = Project.load(path, env_file=env_file)
    past = _read(replace(locate_project(path), env_file=env_file), run, place)
    color: Paint = partial(paint, color=results.is_terminal and wants_color(os.environ, no_color=no_color))
    files, result = _checked(path, project, past)
    for name, text in files.items():
        results.write("".join(f"{line}\n" for line in _diff(name, text, color)))
    width = results.columns or _WIDTH
    suite = SuiteResult((result,), seconds=result.seconds)
    for line in (*failure_lines(suite, width, color, Path()), "", summary_line(suite, color)):
        results.write(f"{line}\n")
    if not _is_agreed(len(files)):
        write_stderr("nothing was written\n")
        return 0 if result.ok else 1
    for name, text in files.items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        Root(project.root).write(name, text.encode("utf-8", "backslashreplace"))
        results.write(f"wrote {name}\n")
    return 0 if result.ok else 1


def _read(located: ProjectLocation, run: str, place: str | None) -> PastRun:
    store, masks = existing_store(located, place), Masks(located.root, redactor())

    async def read() -> tuple[PastRun, str]:
        try:
            record = await found_run(store, run)
            written = await store.observations(Filter(run_id=record.id))
            portable = [json.loads(masks.portable(json.dumps(each.data, ensure_ascii=False))) for each in written]
            events = [event for event in map(event_from_dict, portable) if event is not None]
            return PastRun(record, events, await store.exchanges(record.id)), gone_line(record)
        finally:
            await store.aclose()

    past, gone = asyncio.run(read())
    if gone and not past.exchanges:
        raise UsageError(
            f"no test can be made of the run {short_run_id(past.record.id)}: {gone}", hint="Choose a later run."
        )
    past.check()
    return past


def _checked(path: Path, project: Project, past: PastRun) -> tuple[Mapping[str, str], CaseResult]:
    """The files of the test, and what comes of it in a copy of the project.

    A run in which everything was approved, such as with `--approve-all`, left no trace of that: so this is tried too.
    """
    with open_workspace(path, copies=True, agents={}, env_file=project.env_file) as workspace:
        label = _free_name(project.root, past.slug)
        copy = workspace.root if path.is_dir() else workspace.root / path.name
        tried: list[tuple[Mapping[str, str], CaseResult]] = []
        for approve in (False, True):
            files = _files(project, past, label, approve=approve)
            for name, text in files.items():
                target = workspace.root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8", errors="backslashreplace")
            case = next(each for each in all_cases(read_tests(workspace.root)) if each.source.label == label)
            tried.append((files, run_case(copy, case, Plan(env_file=project.env_file)).result))
            if tried[-1][1].ok:
                return tried[-1]
        return tried[0]


def _free_name(root: Path, slug: str) -> str:
    number, name = 1, f"{FOLDER}/{slug}{ENDING}"
    while os.path.lexists(root / name):
        number += 1
        name = f"{FOLDER}/{slug}-{number}{ENDING}"
    return name


def _files(project: Project, past: PastRun, label: str, *, approve: bool) -> dict[str, str]:
    """The texts of the test file and the cassette, by their names."""
    from llm_do.formats.case_file import parse_tests
    from llm_do.linker.sources.test_files import TestSource

    text = past.case_text(project, approve=approve)
    parsed = parse_tests(text, label)
    (case,) = all_cases([TestSource(project.root / label, label, parsed.value, parsed.node)])
    files = {label: text}
    if past.needs_cassette:
        files[case.cassette().as_posix()] = past.cassette(Masks(project.root, redactor()), __version__).to_text()
    return files


def _diff(name: str, text: str, color: Paint) -> list[str]:
    """A new file as a diff; of a long one, the beginning."""
    lines = list(difflib.unified_diff([], text.splitlines(), "/dev/null", name, lineterm=""))
    shown = [color(line, "good") if line.startswith("+") else line for line in lines[:_MOST_LINES]]
    return [*shown, *([f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else [])]


def _is_agreed(count: int) -> bool:
    """Whether the files may be written; only a person at a terminal is asked."""
    if not (os.isatty(0) and os.isatty(2)):
        return True
    write_stderr(f"write {'this file' if count == 1 else f'these {count} files'}? [Y/n] ")
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")
