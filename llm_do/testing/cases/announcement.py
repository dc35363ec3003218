"""The notice before models are asked: for how many tests, and what that took last time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llm_do.errors import UsageError
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.results import cost_note
from llm_do.testing.cases.workers import Job
from llm_do.testing.cassettes.files import read_cassette
from llm_do.text.words import with_count

__all__ = ["describe_requests"]


def describe_requests(root: Path, jobs: Sequence[Job]) -> str:
    """Describe what jobs will ask models for, as far as their recordings say.

    Args:
        root: The project's folder.
        jobs: Jobs that record, or run live.

    Returns:
        A sentence without a full stop.
    """
    known, new = Usage(), 0
    for job in jobs:
        try:
            used = read_cassette(root / job.case.cassette(job.plan.column.name)).usage
            known = sum([used] * job.repeats, known)
        except UsageError:
            new += 1
    runs = sum(job.repeats for job in jobs)
    count = with_count(len(jobs), "test") + (f", {with_count(runs, 'run')}" if runs != len(jobs) else "")
    verb = "asking models in" if any(job.plan.mode == "live" for job in jobs) else "recording"
    if new == len(jobs):
        return f"{verb} {count} for the first time: what it costs isn't known"
    first = f"; {new} for the first time" if new else ""
    return f"{verb} {count}{cost_note(known)}{first}"
