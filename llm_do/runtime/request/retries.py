"""When a request is made again, and what its failure is called once it isn't."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai import exceptions

from llm_do._startup.frozen import frozen
from llm_do.errors import LlmDoError
from llm_do.models.composites import component_models
from llm_do.models.providers.failures import explain_failure
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events import RetryEvent
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.request.cost import check_price
from llm_do.runtime.request.reservation import reserve
from llm_do.runtime.request.send import send

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.transport import OutgoingRequest

__all__ = ["RetryPolicy", "send_with_retries"]

MAX_DELAY = 30.0
"""Longest pause between two attempts, in seconds, when the provider names none."""

LONGEST_WAIT = 600.0
"""Seconds that a provider may ask to wait; one that asks for more has failed for good."""


@frozen
class RetryPolicy:
    """How often a request is made again, and the seconds before the first time."""

    retries: int
    first_delay: float

    def delay(self, attempt: int, outcome: RequestOutcome) -> float | None:
        """Seconds to wait after a failed attempt; None if it was the last."""
        assert outcome.failure is not None
        failure, wait = outcome.failure, outcome.failure.retry_after
        if not failure.transient or attempt > self.retries or (wait is not None and wait > LONGEST_WAIT):
            return None
        if wait is not None and wait >= 0:
            return wait
        # Doubling with jitter: AWS's "full jitter" halves collisions of clients that failed together.
        return min(self.first_delay * 2 ** (attempt - 1), MAX_DELAY) * (0.5 + random.random() / 2)


async def send_with_retries(
    ctx: CallContext, request: OutgoingRequest, policy: RetryPolicy, place: RequestPlace
) -> RequestOutcome:
    """Send until a response comes, the failure isn't a transient one, or the retries are used up."""
    budget, frame = ctx.run.budget, ctx.frame
    check_price(budget.budget.cost_usd, request.model)
    text_before = frame.text
    attempt = 0
    while True:
        allowed, held = await reserve(budget, request)
        outcome = await send(ctx, allowed, held, replace(place, attempt=attempt + 1))
        if outcome.failure is None:
            return outcome
        attempt += 1
        delay = policy.delay(attempt, outcome)
        if delay is None:
            error = outcome.error()
            failure = _as_failure(ctx, request, error)
            if failure is error:
                raise error
            raise failure from error
        frame.text = text_before  # a partial answer doesn't count
        emit(ctx, RetryEvent, attempt=attempt, delay=round(delay, 3), error=str(outcome.failure))
        await asyncio.sleep(delay)


def _as_failure(ctx: CallContext, request: OutgoingRequest, error: Exception) -> Exception:
    """A request's failure as one of our errors; PydanticAI's own judgement of a response stays as it is."""
    if isinstance(error, LlmDoError | exceptions.UserError | exceptions.UnexpectedModelBehavior):
        return error
    names = [ctx.runtime.pool.name_of(each) for each in component_models(request.model)]
    agent = ctx.frame.config.agent
    file = agent.place.file if agent is not None and agent.place is not None else None
    failure = explain_failure(error, names, agent=ctx.frame.config.name, file=file)
    failure.agent_path = ctx.path
    return failure
