"""Failures by their cause: many tests whose recordings miss for one reason are one report."""

from __future__ import annotations

from llm_do._startup.frozen import frozen
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.results import CaseResult, Failure, SuiteResult, cost_note

__all__ = ["Cause", "causes_of"]


@frozen
class Cause:
    """Why tests have failed.

    Args:
        cases: The tests: several, if each has nothing but this failure.
        failures: What is wrong with the first of them.
    """

    cases: tuple[CaseResult, ...]
    failures: tuple[Failure, ...]

    @property
    def what(self) -> str:
        """What is wrong with each of them, as a sentence."""
        return _cause(self.failures[0])

    @property
    def hint(self) -> str | None:
        """What to do about all of them."""
        first = self.failures[0]
        if first.hint is None or first.last_time is None or len(self.cases) == 1:
            return first.hint
        times = [case.failures[0].last_time or Usage() for case in self.cases]
        one = first.hint.removesuffix(".").removesuffix(cost_note(first.last_time))
        return f"{one.replace('Record it', 'Record them', 1)}{cost_note(sum(times, Usage()))}."


def causes_of(suite: SuiteResult) -> list[Cause]:
    """The causes of a suite's failures, in the order of their first tests."""
    groups: dict[object, list[CaseResult]] = {}
    for number, case in enumerate(suite.cases):
        if case.ok or not case.failures:
            continue
        first = case.failures[0]
        is_common = len(case.failures) == 1 and first.last_time is not None
        key = (_cause(first), first.file, first.line, first.block) if is_common else number
        groups.setdefault(key, []).append(case)
    return [Cause(tuple(cases), cases[0].failures) for cases in groups.values()]


def _cause(failure: Failure) -> str:
    """What is wrong, without which request it was found by.

    Example:
        >>> _cause(Failure(what="the cassette has no answer for request 1 of main: the input of main has changed"))
        'the input of main has changed'
    """
    start, _, rest = failure.what.partition(": ")
    return rest if rest and start.startswith("the cassette has no answer for ") else failure.what
