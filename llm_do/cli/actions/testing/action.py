"""What `llm-do test` does: from its options to cases, runs and a report."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.cli.actions.admission import admit
from llm_do.cli.actions.link_report import show
from llm_do.cli.arguments.target import project_at, user_path
from llm_do.cli.process.streams import Results, warn
from llm_do.errors import UsageError
from llm_do.linker.sources.test_files import read_tests
from llm_do.linker.subprocess_check import check_in_subprocess
from llm_do.models.providers.model_names import anchor_path, check_model_name, parse_override
from llm_do.testing.cases.announcement import describe_requests
from llm_do.testing.cases.case import Case, Column, Plan, all_cases, columns_of
from llm_do.testing.cases.results import SuiteResult
from llm_do.testing.cases.suite import SuiteRun, default_processes, run_suite, select
from llm_do.testing.cases.workers import Job
from llm_do.testing.reports.text_report import Progress, failure_lines, summary_line
from llm_do.text.words import did_you_mean, with_count
from llm_do.ui.terminal.screen import paint, wants_color

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from llm_do.cli.actions.testing.options import TestOptions
    from llm_do.linker.sources.test_files import TestSource
    from llm_do.project.project import Project
    from llm_do.testing.reports.base_report import Base
    from llm_do.testing.reports.text_report import Paint

__all__ = ["LinkedTests", "ReportTarget", "link_tests", "project_facts", "run_linked", "run_tests"]

_WIDTH = 80


def run_tests(options: TestOptions, results: Results) -> int:
    """Run a project's tests and report; returns the exit code.

    Raises:
        UsageError: The options exclude each other, or there are no tests.
    """
    options.check()
    path = project_at(options.project)
    if options.env_file is not None:  # tests run in other folders
        options = replace(options, env_file=str(user_path(options.env_file).absolute()))
    admit(path, trust=options.trust, env_file=options.env_file, no_color=options.no_color)
    if options.run is not None:
        from llm_do.cli.actions.testing.past_runs import make_test

        return make_test(
            path, options.run, results, place=options.store, env_file=options.env_file, no_color=options.no_color
        )
    target = _report_target(options)
    if options.watch:
        from llm_do.cli.actions.testing.watching import watch_tests

        return watch_tests(options, results, path, target)
    linked = link_tests(path, options)
    return 3 if linked is None else run_linked(linked, options, results, target)


@frozen
class LinkedTests:
    """A project that links, with its tests.

    Args:
        path: The project's folder, manifest or `.agent` file.
        root: Its folder.
        tests: Its test files.
        facts: What `project_facts` found.
    """

    path: Path
    root: Path
    tests: Sequence[TestSource]
    facts: Mapping[str, Any]


def link_tests(path: Path, options: TestOptions) -> LinkedTests | None:
    """Link a project with its tests, and show what is wrong with them; None if that is an error."""
    task = "llm_do.cli.actions.testing.action:project_facts"
    checked = check_in_subprocess(path, task, seconds=options.seconds, tests=True, env_file=options.env_file)
    show(checked, no_color=options.no_color)
    if checked.failed:
        return None
    return LinkedTests(path, checked.root, read_tests(checked.root), checked.data)


def run_linked(
    linked: LinkedTests,
    options: TestOptions,
    results: Results,
    target: ReportTarget,
    *,
    only: Collection[str] | None = None,
) -> int:
    """Run the tests of a project that are chosen, of these `only` those with the ids named; returns the exit code.

    Raises:
        UsageError: There are no tests.
    """
    every = all_cases(linked.tests)
    cases = select(every, options.text)
    if not cases:
        raise _no_tests(linked.root, every, options.text)
    cases = [case for case in cases if only is None or case.id in only]
    plan = _plan(options, linked.facts["agents"], linked.facts["aliases"])
    jobs = _jobs(cases, plan, columns_of(linked.tests) if options.matrix else None)
    return _Testing(options, results, linked.path, linked.root, jobs).run(target)


def project_facts(project: Project) -> dict[str, Any]:
    """The names of a project's agents and aliases of models, and what of it leads to what, as JSON data."""
    from llm_do.models.aliases import known_aliases
    from llm_do.project.flow_spec import every_agent
    from llm_do.testing.watching.reach import connections_of

    agents = sorted({spec.name for spec, _ in every_agent(project.registry)})
    aliases = sorted(known_aliases(project.model_aliases))
    return {"agents": agents, "aliases": aliases, "connections": connections_of(project)}


@frozen
class ReportTarget:
    """Where the report goes, and what it is compared with.

    Args:
        file: Its file; None for stdout.
        base: An earlier report.
    """

    file: Path | None = None
    base: Base | None = None


def _report_target(options: TestOptions) -> ReportTarget:
    """The target that the options name, checked before anything runs."""
    file = base = None
    if options.output is not None:
        from llm_do.testing.reports.report_file import check_report_file

        file = user_path(options.output)
        check_report_file(file)
    if options.base is not None:
        from llm_do.testing.reports.base_report import read_base

        base = read_base(user_path(options.base))
    return ReportTarget(file, base)


def _no_tests(root: Path, cases: Sequence[Case], text: str | None) -> UsageError:
    if not cases:
        hint = "Write one, such as tests/main.test.yaml; `llm-do init` shows how in a new project."
        return UsageError(f"no tests found: {root} has no tests/*.test.yaml", hint=hint)
    near = did_you_mean(text or "", [case.name for case in cases])
    return UsageError(
        f"no tests found: neither name nor file of any of {with_count(len(cases), 'test')} contains {text!r}",
        hint=near or f"The first one is {cases[0].name!r}.",
    )


def _plan(options: TestOptions, agents: Sequence[str], aliases: Collection[str]) -> Plan:
    """How cases are run, before it is known in which columns."""
    override = parse_override(options.models)
    models = {name: anchor_path(model, Path.cwd()) for name, model in override.agents.items()}
    everyone = anchor_path(override.everyone, Path.cwd()) if isinstance(override.everyone, str) else None
    for model in (*([everyone] if everyone is not None else []), *models.values()):
        if model not in aliases:
            check_model_name(model, aliases=aliases)
    unknown = next((name for name in models if name not in agents), None)
    if unknown is not None:
        hint = did_you_mean(unknown, agents) or f"Its agents are {', '.join(agents) or 'none'}."
        raise UsageError(f"a model is named for {unknown!r}, and the project has no such agent", hint=hint)
    mode = "record" if options.record else "live" if options.live else "replay"
    return Plan(
        mode, options.again, everyone, models, options.repeat, replays=options.replay, env_file=options.env_file
    )


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

    def run(self, target: ReportTarget) -> int:
        """Run the jobs, report, and return the exit code."""
        if self._options.record or self._options.live:
            warn(describe_requests(self._root, self._jobs))
        run = self._run(self._jobs)
        if self._options.record_missing and run.missing and not run.interrupted:
            run = self._record_missing(run)
        self._report(run, target)
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
        warn(describe_requests(self._root, jobs))
        again = self._run(jobs)
        runs = {**run.runs, **{numbers[number]: each for number, each in again.runs.items()}}
        results = list(run.result.cases)
        for number, result in zip(numbers, again.result.cases, strict=True):
            results[number] = result
        suite = SuiteResult(tuple(results), run.result.columns, run.result.seconds + again.result.seconds)
        return SuiteRun(suite, runs, again.interrupted)

    def _write(self, text: str) -> None:
        if self._is_text:
            self._results.write(text)
        else:
            os.write(2, text.encode("utf-8", "backslashreplace"))

    def _report(self, run: SuiteRun, target: ReportTarget) -> None:
        suite = run.result
        for line in failure_lines(suite, self._width, self._paint, self._folder):
            self._write(f"{line}\n")
        recorded = [each.recorded for each in run.runs.values() if each.recorded]
        if recorded:
            cost = [float(each.result.cost) for each in run.runs.values() if each.recorded and each.result.cost]
            dollars = f", ${sum(cost):.4f}" if cost else ""
            requests = with_count(sum(recorded), "request")
            self._write(f"\nrecorded {requests} in {with_count(len(recorded), 'cassette')}{dollars}\n")
        self._write(f"\n{summary_line(suite, self._paint, interrupted=run.interrupted)}\n")
        text = self._formatted(suite, target.base)
        if text is None:
            return
        if target.file is None:
            self._results.write(text)
            return
        from llm_do.testing.reports.report_file import write_report

        write_report(target.file, text)

    def _formatted(self, suite: SuiteResult, base: Base | None) -> str | None:
        """The report in its format; None for text."""
        if self._options.form == "json":
            from llm_do.testing.reports.json_report import to_json

            return to_json(suite)
        if self._options.form == "junit":
            from llm_do.testing.reports.junit_report import to_junit

            return to_junit(suite, self._folder)
        if self._options.form == "markdown":
            from llm_do.testing.reports.markdown_report import to_markdown

            return to_markdown(suite, base, self._folder)
        return None


def _seen_from_here(root: Path) -> Path:
    """The project's folder relative to the current one, where it is below it."""
    try:
        return root.relative_to(Path.cwd())
    except (OSError, ValueError):
        return root
