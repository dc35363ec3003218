"""When a request is made again, and what its failure is called once it isn't."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai import exceptions

from llm_do._startup.frozen import frozen
from llm_do.errors import LlmDoError, ModelError
from llm_do.models.composites import ModelList, component_models
from llm_do.models.providers.failures import explain_failure
from llm_do.project.faults import find_fault
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events.model_events import RetryEvent
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
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

LONGEST_WAIT = 60.0
"""Seconds that a provider may ask to wait; one that asks for more has failed for good."""

LONG_DELAY = 5.0
"""The shortest pause, in seconds, that is shown to a person: nothing else is visible meanwhile."""


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
    frame = ctx.frame
    check_price(ctx.run.budget.budget.cost_usd, request.model)
    text_before = frame.text
    attempt = 0
    while True:
        attempt += 1
        outcome = await _try_each_model(ctx, request, replace(place, attempt=attempt))
        if outcome.failure is None:
            return outcome
        delay = policy.delay(attempt, outcome)
        if delay is None:
            error = outcome.error()
            failure = _as_failure(ctx, request, error)
            wait = outcome.failure.retry_after or 0
            if isinstance(failure, ModelError) and wait > LONGEST_WAIT:
                failure.hint = f"the provider asks to wait {wait:.0f} s: try again then, or use another model"
            if failure is error:
                raise error
            raise failure from error
        frame.text = text_before  # a partial answer doesn't count
        emit(ctx, RetryEvent, attempt=attempt, delay=round(delay, 3), error=str(outcome.failure))
        if delay >= LONG_DELAY:
            ctx.runtime.config.notice(f"{ctx.path} waits {delay:.0f} s to ask its model again: {outcome.failure}")
        await asyncio.sleep(0 if ctx.run.durable is not None and ctx.run.durable.log.replays else delay)


async def _try_each_model(ctx: CallContext, request: OutgoingRequest, place: RequestPlace) -> RequestOutcome:
    """Send to the model, or to those of a list in order until one answers."""
    choices = _choices(ctx, request)
    text_before = ctx.frame.text
    failed: list[RequestOutcome] = []
    for number, choice in enumerate(choices, 1):
        allowed, held = await reserve(ctx, choice, place)
        outcome = await send(ctx, allowed, held, place)
        if outcome.failure is None or not _lets_others_try(outcome):
            return outcome
        failed.append(outcome)
        if number < len(choices):
            ctx.frame.text = text_before
            following = str(choices[number].name)
            emit(ctx, RetryEvent, attempt=place.attempt, delay=0.0, error=str(outcome.failure), model=following)
    if len(failed) == 1:
        return failed[0]
    group = exceptions.FallbackExceptionGroup("all models failed", [each.error() for each in failed])
    return RequestOutcome(failed[-1].usage, failure=RequestFailure.of(group), cause=group)


def _choices(ctx: CallContext, request: OutgoingRequest) -> list[OutgoingRequest]:
    """The request to each model of a list; the request itself where there is no list."""
    if not isinstance(request.model, ModelList):
        return [request]
    models, names = request.model.choices, request.name
    if isinstance(names, str) or len(names) != len(models):  # some models were left out
        names = [ctx.runtime.pool.name_of(component_models(model)[0]) for model in models]
    return [replace(request, model=model, name=name) for model, name in zip(models, names, strict=True)]


def _lets_others_try(outcome: RequestOutcome) -> bool:
    """Whether the next model of a list is asked: not where the request itself is wrong."""
    error = outcome.error()
    return isinstance(error, ModelError) or not isinstance(error, LlmDoError | exceptions.UserError)


def _as_failure(ctx: CallContext, request: OutgoingRequest, error: Exception) -> Exception:
    """A request's failure as one of our errors."""
    if isinstance(error, LlmDoError | exceptions.UserError):
        return error
    names = [ctx.runtime.pool.name_of(each) for each in component_models(request.model)]
    agent = ctx.frame.config.agent
    file = agent.place.file if agent is not None and agent.place is not None else None
    failure = explain_failure(error, names, agent=ctx.frame.config.name, file=file)
    failure.agent_path = ctx.path
    if not isinstance(error, exceptions.ModelAPIError):
        fault = find_fault(error, ctx.project.root)
        if fault.file is not None:  # the code of a model that the project has written itself
            failure.file, failure.line = fault.file, fault.line
            failure.hint = failure.hint or "--debug shows the traceback."
    return failure
