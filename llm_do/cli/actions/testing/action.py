"""What `llm-do test` does: from its options to cases, runs and a report."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.cli.actions.link_report import show
from llm_do.cli.arguments.target import project_at, user_path
from llm_do.cli.process.streams import Results, warn
from llm_do.errors import UsageError
from llm_do.linker.sources.test_files import read_tests
from llm_do.linker.subprocess_check import check_in_subprocess
from llm_do.models.providers.model_names import anchor_path, check_model_name, parse_override
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.case import Case, Column, Plan, all_cases, columns_of
from llm_do.testing.cases.results import SuiteResult, cost_note
from llm_do.testing.cases.suite import SuiteRun, default_processes, run_suite, select
from llm_do.testing.cases.workers import Job
from llm_do.testing.cassettes.files import read_cassette
from llm_do.testing.reports.text_report import Progress, failure_lines, summary_line
from llm_do.text.words import did_you_mean
from llm_do.ui.terminal.screen import paint, wants_color

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from llm_do.cli.actions.testing.options import TestOptions
    from llm_do.project.project import Project
    from llm_do.testing.reports.text_report import Paint

__all__ = ["agent_names", "run_tests"]

_WIDTH = 80


def run_tests(options: TestOptions, results: Results) -> int:
    """Run a project's tests and report; returns the exit code.

    Raises:
        UsageError: The options exclude each other, or there are no tests.
    """
    options.check()
    path = project_at(options.project)
    file = _report_file(options)
    checked = check_in_subprocess(
        path, "llm_do.cli.actions.testing.action:agent_names", seconds=options.seconds, tests=True
    )
    show(checked, no_color=options.no_color)
    if checked.failed:
        return 3
    tests = read_tests(checked.root)
    cases = select(all_cases(tests), options.text)
    if not cases:
        raise _no_tests(checked.root, all_cases(tests), options.text)
    jobs = _jobs(cases, _plan(options, checked.data or ()), columns_of(tests) if options.matrix else None)
    return _Testing(options, results, path, checked.root, jobs).run(file)


def agent_names(project: Project) -> list[str]:
    """The names of a project's agents."""
    from llm_do.project.flow_spec import every_agent

    return sorted({spec.name for spec, _ in every_agent(project.registry)})


def _report_file(options: TestOptions) -> Path | None:
    if options.output is None:
        return None
    from llm_do.testing.reports.report_file import check_report_file

    file = user_path(options.output)
    check_report_file(file)
    return file


def _no_tests(root: Path, cases: Sequence[Case], text: str | None) -> UsageError:
    if not cases:
        hint = "Write one, such as tests/main.test.yaml; `llm-do init` shows how in a new project."
        return UsageError(f"no tests found: {root} has no tests/*.test.yaml", hint=hint)
    near = did_you_mean(text or "", [case.name for case in cases])
    return UsageError(
        f"no tests found: neither name nor file of any of {len(cases)} tests contains {text!r}",
        hint=near or f"The first one is {cases[0].name!r}.",
    )


def _plan(options: TestOptions, agents: Sequence[str]) -> Plan:
    """How cases are run, before it is known in which columns."""
    override = parse_override(options.models)
    models = {name: anchor_path(model, Path.cwd()) for name, model in override.agents.items()}
    everyone = anchor_path(override.everyone, Path.cwd()) if isinstance(override.everyone, str) else None
    for model in (*([everyone] if everyone is not None else []), *models.values()):
        check_model_name(model)
    unknown = next((name for name in models if name not in agents), None)
    if unknown is not None:
        hint = did_you_mean(unknown, agents) or f"Its agents are {', '.join(agents) or 'none'}."
        raise UsageError(f"a model is named for {unknown!r}, and the project has no such agent", hint=hint)
    mode = "record" if options.record else "live" if options.live else "replay"
    return Plan(mode, options.again, everyone, models, options.repeat)


def _jobs(cases: Sequence[Case], plan: Plan, columns: Mapping[str, Sequence[Column]] | None) -> list[Job]:
    if columns is None:
        return [Job(case, plan) for case in cases]
    if not any(columns.values()):
        raise UsageError("no test file has a `matrix`", hint="Write one, or leave --matrix out.")
    return [
        Job(case, replace(plan, column=column))
        for label in dict.fromkeys(case.source.label for case in cases)
        for column in columns[label] or [Column()]
        for case in cases
        if case.source.label == label
    ]


class _Testing:
    """The jobs of one command, and where they are reported."""

    def __init__(self, options: TestOptions, results: Results, path: Path, root: Path, jobs: Sequence[Job]) -> None:
        self._options = options
        self._results = results
        self._path = path
        self._root = root
        self._jobs = jobs
        self._processes = options.processes or default_processes()
        # Where the report itself goes to stdout, what a person sees goes to stderr.
        self._is_text = options.form == "text" or options.output is not None
        color = wants_color(os.environ, no_color=options.no_color) and (results.is_terminal or not self._is_text)
        self._paint: Paint = partial(paint, color=color)
        self._width = results.columns or _WIDTH
        self._folder = _seen_from_here(root)

    def run(self, file: Path | None) -> int:
        """Run the jobs, report, and return the exit code."""
        if self._options.record or self._options.live:
            self._announce(self._jobs, "recording" if self._options.record else "asking models for")
        run = self._run(self._jobs)
        if self._options.record_missing and run.missing and not run.interrupted:
            run = self._record_missing(run)
        self._report(run, file)
        if run.interrupted:
            return 130
        if run.provider_failed:
            return 7
        return 0 if run.result.ok else 1

    def _run(self, jobs: Sequence[Job]) -> SuiteRun:
        progress = Progress(self._write, self._width, self._paint, self._folder)
        columns = [job.plan.column.name for job in jobs if job.plan.column.name is not None]
        run = run_suite(
            self._path,
            jobs,
            processes=self._processes,
            columns=list(dict.fromkeys(columns)),
            on_result=progress.add,
        )
        progress.end()
        return run

    def _record_missing(self, run: SuiteRun) -> SuiteRun:
        """Record the jobs that miss recordings, and put their results in the place of those of the replay."""
        numbers = sorted(run.missing)
        jobs = [replace(self._jobs[number], plan=replace(self._jobs[number].plan, mode="record")) for number in numbers]
        self._announce(jobs, "recording")
        again = self._run(jobs)
        runs = {**run.runs, **{numbers[number]: each for number, each in again.runs.items()}}
        results = list(run.result.cases)
        for number, result in zip(numbers, again.result.cases, strict=True):
            results[number] = result
        suite = SuiteResult(tuple(results), run.result.columns, run.result.seconds + again.result.seconds)
        return SuiteRun(suite, runs, again.interrupted)

    def _announce(self, jobs: Sequence[Job], verb: str) -> None:
        """Say what will be asked, before anything is."""
        known, new = Usage(), 0
        for job in jobs:
            cassette = self._root / job.case.cassette(job.plan.column.name)
            try:
                repeats = (job.plan.repeat or job.case.live.repeat) if job.plan.mode == "live" else 1
                known = sum([read_cassette(cassette).usage] * repeats, known)
            except UsageError:
                new += 1
        count = f"{len(jobs)} test{'' if len(jobs) == 1 else 's'}"
        first = f", {new} of them for the first time" if new and known.requests else ""
        unknown = " for the first time: what it costs isn't known" if new == len(jobs) else ""
        warn(f"{verb} {count}{first}{cost_note(known)}{unknown}")

    def _write(self, text: str) -> None:
        if self._is_text:
            self._results.write(text)
        else:
            os.write(2, text.encode("utf-8", "backslashreplace"))

    def _report(self, run: SuiteRun, file: Path | None) -> None:
        suite = run.result
        for line in failure_lines(suite, self._width, self._paint, self._folder):
            self._write(f"{line}\n")
        recorded = [each.recorded for each in run.runs.values() if each.recorded]
        if recorded:
            cost = [float(each.result.cost) for each in run.runs.values() if each.recorded and each.result.cost]
            dollars = f", ${sum(cost):.4f}" if cost else ""
            self._write(f"\nrecorded {sum(recorded)} requests in {len(recorded)} cassettes{dollars}\n")
        self._write(f"\n{summary_line(suite, self._paint, interrupted=run.interrupted)}\n")
        text = self._formatted(suite)
        if text is None:
            return
        if file is None:
            self._results.write(text)
            return
        from llm_do.testing.reports.report_file import write_report

        write_report(file, text)

    def _formatted(self, suite: SuiteResult) -> str | None:
        """The report in its format; None for text."""
        if self._options.form == "json":
            from llm_do.testing.reports.json_report import to_json

            return to_json(suite)
        if self._options.form == "junit":
            from llm_do.testing.reports.junit_report import to_junit

            return to_junit(suite, self._folder)
        if self._options.form == "markdown":
            from llm_do.testing.reports.markdown_report import to_markdown

            return to_markdown(suite, folder=self._folder)
        return None


def _seen_from_here(root: Path) -> Path:
    """The project's folder relative to the current one, where it is below it."""
    try:
        return root.relative_to(Path.cwd())
    except (OSError, ValueError):
        return root
