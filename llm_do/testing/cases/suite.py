"""A project's cases as a whole: which are run, in processes, and in which order they are reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path

from llm_do._startup.frozen import frozen
from llm_do.testing.cases.case import Case
from llm_do.testing.cases.results import CaseResult, SuiteResult
from llm_do.testing.cases.running import CaseRun
from llm_do.testing.cases.workers import Job, run_jobs

__all__ = ["SuiteRun", "default_processes", "run_suite", "select"]


@frozen
class SuiteRun:
    """What came of a suite, and what only the one who runs it has to know.

    Args:
        result: The results, in the order of the jobs.
        runs: What came of each job that was run, by its number.
        interrupted: Whether a person ended it.
    """

    result: SuiteResult
    runs: dict[int, CaseRun] = field(default_factory=dict[int, CaseRun])
    interrupted: bool = False

    @property
    def missing(self) -> list[int]:
        """The numbers of the jobs that miss recordings."""
        return [number for number, run in self.runs.items() if run.misses]

    @property
    def provider_failed(self) -> bool:
        """Whether a provider failed while cases were recorded."""
        return any(run.provider_failed for run in self.runs.values())


def default_processes() -> int:
    """How many processes run cases if no one says: one for each processor that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def select(cases: Iterable[Case], text: str | None) -> list[Case]:
    """The cases whose file or name contains a text, in any capitals."""
    if text is None:
        return list(cases)
    return [case for case in cases if text.casefold() in case.id.casefold()]


def run_suite(
    project: Path,
    jobs: Sequence[Job],
    *,
    processes: int,
    columns: Sequence[str],
    on_result: Callable[[CaseResult], object],
) -> SuiteRun:
    """Run jobs, and report each result as soon as those before it are there.

    Args:
        project: The project's folder, manifest or `.agent` file.
        jobs: The jobs, in the order in which they are reported.
        processes: How many run at once.
        columns: The names of the matrix columns.
        on_result: Called with each result, in order.

    Returns:
        The results. After an interruption, those of cases that hadn't ended are `skipped`.
    """
    started = time.monotonic()
    runs: dict[int, CaseRun] = {}
    shown, interrupted = 0, False
    try:
        for number, run in run_jobs(project, jobs, processes):
            runs[number] = run
            while shown in runs:
                shown += 1
                on_result(runs[shown - 1].result)
    except KeyboardInterrupt:
        interrupted = True
    results = [runs[number].result if number in runs else _skipped(job) for number, job in enumerate(jobs)]
    for result in results[shown:]:
        on_result(result)
    suite = SuiteResult(tuple(results), tuple(columns), time.monotonic() - started)
    return SuiteRun(suite, runs, interrupted)


def _skipped(job: Job) -> CaseResult:
    case, column = job.case, job.plan.column.name
    return CaseResult(
        case.id, case.name, case.file, case.line, column, "skipped", reason="interrupted", repeats=0, passed_repeats=0
    )
