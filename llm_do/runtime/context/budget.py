"""The budget of a run over its whole tree of calls, and the loop detection of one agent.

Each check and its reservation happen without an await in between, so that parallel calls can't both pass it.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from llm_do.errors import BudgetError
from llm_do.project.project import Budget
from llm_do.runtime.record.results import Usage

__all__ = ["BudgetMeter", "LoopGuard", "Reservation"]

ROUNDING = 1e-9
"""What sums of prices may be off by."""


@dataclass(slots=True)
class Reservation:
    """What one model request reserves until its response arrives: tokens, and US dollars if they can be known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    @property
    def holds_anything(self) -> bool:
        """Whether others may have to wait for it."""
        return self.input_tokens > 0 or self.output_tokens > 0 or (self.cost_usd or 0.0) > 0


class BudgetMeter:
    """Counts a run's usage against its budget; every request reserves its worst case first.

    Args:
        budget: The limits; a field that is None has no limit.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.used = Usage()
        self._spent = 0.0
        self._unpriced = False
        self.descendants = 0
        self.estimated: set[str] = set()
        """Models that don't say what they use, so that it is estimated."""
        self.unbounded: set[str] = set()
        """Models whose requests may cost what can't be known before."""
        self._held_input = 0
        self._held_output = 0
        self._held_cost = 0.0
        self._holding = 0
        self._requests_begun = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit that requests count against."""
        budget = self.budget
        limits = (budget.requests, budget.input_tokens, budget.output_tokens, budget.total_tokens, budget.cost_usd)
        return any(limit is not None for limit in limits)

    @property
    def counts_tokens(self) -> bool:
        """Whether a request's tokens must be estimated beforehand."""
        budget = self.budget
        return any(limit is not None for limit in (budget.input_tokens, budget.output_tokens, budget.total_tokens))

    @property
    def counts_cost(self) -> bool:
        """Whether what a request costs at most must be found beforehand."""
        return self.budget.cost_usd is not None

    @property
    def is_held(self) -> bool:
        """Whether requests in flight hold something that may be released."""
        return self._holding > 0

    async def wait_for_release(self) -> None:
        """Wait until some request has released its reservation."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(settled)
        try:
            await settled
        finally:
            self._waiting.remove(settled)

    def remaining_output(self, input_tokens: int, input_usd: float, token_usd: float) -> int | None:
        """Return how many output tokens a request may still produce; None means no limit.

        Args:
            input_tokens: The tokens that it sends.
            input_usd: What they cost.
            token_usd: What each output token costs.
        """
        budget, used = self.budget, self.used
        left: list[int] = []
        if budget.output_tokens is not None:
            left.append(budget.output_tokens - used.output_tokens - self._held_output)
        if budget.total_tokens is not None:
            held = self._held_input + self._held_output
            left.append(budget.total_tokens - used.total_tokens - held - input_tokens)
        if budget.cost_usd is not None and token_usd > 0:
            left.append(
                math.floor((budget.cost_usd - self._spent - self._held_cost - input_usd) / token_usd + ROUNDING)
            )
        return min(left) if left else None

    def reserve(self, input_tokens: int = 0, output_tokens: int = 0, cost_usd: float | None = None) -> Reservation:
        """Reserve the most that one request may use; None for a cost that can't be known."""
        budget, used = self.budget, self.used
        _check("requests", self._requests_begun + 1, budget.requests)
        _check("input_tokens", used.input_tokens + self._held_input + input_tokens, budget.input_tokens)
        _check("output_tokens", used.output_tokens + self._held_output + max(output_tokens, 1), budget.output_tokens)
        total = used.total_tokens + self._held_input + self._held_output + input_tokens + max(output_tokens, 1)
        _check("total_tokens", total, budget.total_tokens)
        self._check_cost(cost_usd or 0.0)
        self._requests_begun += 1
        self._held_input += input_tokens
        self._held_output += output_tokens
        self._held_cost += cost_usd or 0.0
        held = Reservation(input_tokens, output_tokens, cost_usd)
        self._holding += held.holds_anything
        return held

    def count_replayed(self) -> Reservation:
        """Count a request that an earlier attempt made: what it used is known, and fitted then."""
        self._requests_begun += 1
        return Reservation()

    def _check_cost(self, needed: float) -> None:
        limit = self.budget.cost_usd
        if limit is None:
            return
        if self._spent >= limit:
            raise BudgetError(f"the run's budget of {limit} US dollars is used up", hint=_HINT)
        if self._unpriced:
            raise BudgetError(
                f"the run's budget of {limit} US dollars can't be enforced: a model with an unknown price has answered",
                hint="Limit tokens or requests instead, or use models with a known price.",
            )
        left = limit - self._spent - self._held_cost
        if needed > left + limit * ROUNDING:
            raise BudgetError(
                f"the run's budget of {limit} US dollars has {max(left, 0):.4g} left, and the next request may cost "
                f"{needed:.4g}",
                hint=_HINT,
            )

    def settle(self, held: Reservation, usage: Usage, *, free: bool = False) -> None:
        """Release a reservation and count the actual usage."""
        self._held_input -= held.input_tokens
        self._held_output -= held.output_tokens
        self._holding -= held.holds_anything
        # A sum of prices that have been taken away again is rarely 0.
        self._held_cost = self._held_cost - (held.cost_usd or 0.0) if self._holding else 0.0
        self._spent += usage.cost_usd or 0.0
        self._unpriced |= usage.cost_usd is None and usage.total_tokens > 0 and not free
        self.used += usage
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def add(self, usage: Usage) -> None:
        """Count what was used in an earlier attempt at the run, and isn't used again."""
        self._spent += usage.cost_usd or 0.0
        self._requests_begun += usage.requests
        self.used += usage

    def count_tool_call(self) -> None:
        """Count one tool call that is about to run."""
        _check("tool_calls", self.used.tool_calls + 1, self.budget.tool_calls)
        self.used += Usage(tool_calls=1)

    def count_descendant(self) -> None:
        """Count one nested call."""
        _check("descendants", self.descendants + 1, self.budget.descendants)
        self.descendants += 1


_HINT = "Raise `runtime.budget` in project.json, or make the work smaller."


def _check(what: str, needed: int, limit: int | None) -> None:
    if limit is not None and needed > limit:
        raise BudgetError(f"the run's budget of {limit} {what} is used up", hint=_HINT)


class LoopGuard:
    """Detects a model that requests the same batch of tool calls again and again.

    Args:
        threshold: Consecutive identical batches that count as a loop; 0 turns detection off.

    Example:
        >>> guard = LoopGuard(2)
        >>> guard.closes_loop([("add", '{"a": 1}')]), guard.closes_loop([("add", '{ "a":1 }')])
        (False, True)
    """

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self._last: list[tuple[str, str]] = []
        self._count = 0

    def closes_loop(self, calls: Sequence[tuple[str, object]]) -> bool:
        """Record one response's calls and return whether they close a loop."""
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
