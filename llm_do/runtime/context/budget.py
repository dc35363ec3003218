"""What a run may use: the budget over the whole tree, and the guard against loops of one agent.

A check and what it reserves are one step, without waiting in between, so that parallel calls can't both pass it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from llm_do.errors import BudgetError
from llm_do.project.project import Budget
from llm_do.runtime.record.results import Usage

__all__ = ["BudgetMeter", "LoopGuard", "Reservation"]


@dataclass(slots=True)
class Reservation:
    """What one model request holds until its response has come."""

    input_tokens: int = 0
    output_tokens: int = 0


class BudgetMeter:
    """Counts what a run uses against its budget; every request reserves its worst case first.

    Args:
        budget: The limits; None in it is no limit.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.used = Usage()
        self._spent = 0.0
        self._unpriced = False
        self.descendants = 0
        self._held_input = 0
        self._held_output = 0
        self._requests_begun = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def counts_tokens(self) -> bool:
        """Whether a request's tokens have to be estimated beforehand."""
        budget = self.budget
        return any(limit is not None for limit in (budget.input_tokens, budget.output_tokens, budget.total_tokens))

    @property
    def holds_tokens(self) -> bool:
        """Whether requests in flight hold tokens that may come back."""
        return self._held_input > 0 or self._held_output > 0

    async def something_settled(self) -> None:
        """Wait until some request has given back what it held."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(settled)
        try:
            await settled
        finally:
            self._waiting.remove(settled)

    def output_left(self, input_tokens: int) -> int | None:
        """Output tokens that a request with that much input may still produce; None is no limit."""
        budget, used = self.budget, self.used
        left: list[int] = []
        if budget.output_tokens is not None:
            left.append(budget.output_tokens - used.output_tokens - self._held_output)
        if budget.total_tokens is not None:
            held = self._held_input + self._held_output
            left.append(budget.total_tokens - used.total_tokens - held - input_tokens)
        return min(left) if left else None

    def reserve(self, input_tokens: int = 0, output_tokens: int = 0) -> Reservation:
        """Hold what one request may use at worst."""
        budget, used = self.budget, self.used
        _check("requests", self._requests_begun + 1, budget.requests)
        _check("input_tokens", used.input_tokens + self._held_input + input_tokens, budget.input_tokens)
        _check("output_tokens", used.output_tokens + self._held_output + max(output_tokens, 1), budget.output_tokens)
        total = used.total_tokens + self._held_input + self._held_output + input_tokens + max(output_tokens, 1)
        _check("total_tokens", total, budget.total_tokens)
        self._check_cost()
        self._requests_begun += 1
        self._held_input += input_tokens
        self._held_output += output_tokens
        return Reservation(input_tokens, output_tokens)

    def _check_cost(self) -> None:
        limit = self.budget.cost_usd
        if limit is None:
            return
        if self._spent >= limit:
            raise BudgetError(f"the run's budget of {limit} US dollars is used up", hint=_HINT)
        if self._unpriced:
            raise BudgetError(
                f"the run's budget of {limit} US dollars can't be kept: a model has answered whose price isn't known",
                hint="Limit tokens or requests instead, or name models whose price is known.",
            )

    def settle(self, held: Reservation, usage: Usage, *, free: bool = False) -> None:
        """Give back what was held and count what was used."""
        self._held_input -= held.input_tokens
        self._held_output -= held.output_tokens
        self._spent += usage.cost_usd or 0.0
        self._unpriced |= usage.cost_usd is None and usage.total_tokens > 0 and not free
        self.used += usage
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def tool_call(self) -> None:
        """Count one tool call that is about to run."""
        _check("tool_calls", self.used.tool_calls + 1, self.budget.tool_calls)
        self.used += Usage(tool_calls=1)

    def descendant(self) -> None:
        """Count one nested call."""
        _check("descendants", self.descendants + 1, self.budget.descendants)
        self.descendants += 1


_HINT = "Raise `runtime.budget` in project.json, or make the work smaller."


def _check(what: str, needed: int, limit: int | None) -> None:
    if limit is not None and needed > limit:
        raise BudgetError(f"the run's budget of {limit} {what} is used up", hint=_HINT)


class LoopGuard:
    """Tells when a model asks for the same batch of tool calls again and again.

    Args:
        threshold: Consecutive identical batches that make a loop; 0 never does.

    Example:
        >>> guard = LoopGuard(2)
        >>> guard.repeats([("add", '{"a": 1}')]), guard.repeats([("add", '{ "a":1 }')])
        (False, True)
    """

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self._last: list[tuple[str, str]] = []
        self._count = 0

    def repeats(self, calls: Sequence[tuple[str, object]]) -> bool:
        """Take note of one response's calls; True when they close a loop."""
        batch = sorted((name, _canonical(args)) for name, args in calls)
        if not batch:
            self._last, self._count = [], 0
            return False
        self._count = self._count + 1 if batch == self._last else 1
        self._last = batch
        return 0 < self.threshold <= self._count


def _canonical(args: object) -> str:
    if isinstance(args, str):
        try:
            args = json.loads(args or "{}")
        except (ValueError, RecursionError):
            return str(args)
    return json.dumps(args if args is not None else {}, sort_keys=True, default=str)
