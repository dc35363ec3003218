"""Many inputs of one entry: what `Runtime.map` asks of the room that keeps batches."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from llm_do._extensions import ExtensionPoint
from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError

if TYPE_CHECKING:
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.results import RunResult

__all__ = ["MAP_INPUTS", "BatchBudget", "MapInputs", "check_inputs"]


@frozen
class BatchBudget:
    """What the runs of a batch may cost.

    An input is started only while what has been used and what the runs that haven't ended may use leave room for it. A
    run sends a request only if the most that it may cost fits what is left of its own budget; where that can't be
    known, a warning says so.

    Args:
        total_usd: US dollars for all of them together; needs `each_usd`.
        each_usd: US dollars for each.

    Example:
        >>> BatchBudget(total_usd=5, each_usd=0.05).total_usd
        5
    """

    total_usd: float | None = None
    each_usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("total_usd", "each_usd"):
            value: object = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
                raise UsageError(f"{name} must be a number, not {value!r}", hint="Leave it out for no limit.")
            if not value > 0:
                raise UsageError(f"{name} must be more than 0, not {value!r}", hint="Leave it out for no limit.")
        if self.total_usd is not None and self.each_usd is None:
            raise UsageError(
                "a budget for all inputs needs one for each: an input starts only if what it may cost still fits",
                hint="Pass each_usd too; on the command line, --budget-each-usd.",
            )
        if self.total_usd is not None and self.each_usd is not None and self.each_usd > self.total_usd:
            raise UsageError(
                f"one input may cost {self.each_usd:g} US dollars, and all of them only {self.total_usd:g}",
                hint="Let each cost less, or all of them more.",
            )


def check_inputs(inputs: object) -> None:
    """Raise `UsageError` for a single input, whose characters or keys would be taken for inputs."""
    from pydantic import BaseModel

    kind = type(inputs).__name__
    if isinstance(inputs, str | bytes | Mapping | BaseModel) or not isinstance(inputs, Iterable | AsyncIterable):
        raise UsageError(
            f"map takes several inputs, not a value of type {kind}",
            hint='Pass a list, such as ["one", "two"].',
        )


class MapInputs(Protocol):
    """Runs an entry on many inputs."""

    def __call__(
        self,
        session: Session,
        inputs: Iterable[object] | AsyncIterable[object],
        *,
        entry: str | None = None,
        concurrency: int | None = None,
        budget: BatchBudget | None = None,
        batch: str | None = None,
        retry: bool = False,
        accept_changes: bool = False,
        deps: object = None,
    ) -> AsyncIterator[RunResult]:
        """Yield the results in order; `Runtime.map` describes the arguments."""
        ...


MAP_INPUTS: ExtensionPoint[MapInputs] = ExtensionPoint("map_inputs")
"""Runs an entry on many inputs."""
