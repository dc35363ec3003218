"""What a request may cost at worst, reserved before it is sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do.errors import BudgetError
from llm_do.models.composites import component_models
from llm_do.models.token_estimates import estimate_request_tokens
from llm_do.runtime.record.transport import OutgoingRequest
from llm_do.runtime.request.cost import is_free
from llm_do.runtime.request.cost_bounds import CostBound, cost_bound
from llm_do.runtime.request.request_step import is_replayed

if TYPE_CHECKING:
    from llm_do.runtime.context.budget import Reservation
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.exchanges import RequestPlace

__all__ = ["reserve"]

DEFAULT_OUTPUT = 16_384
"""Output tokens that a request is held to under a budget where its agent sets no `max_tokens`: large models refuse
numbers far above what they can produce, and parallel requests have to share what is left."""

COUNTING_TIME = 10.0
"""Seconds that a model may take to count a request's tokens; then they are estimated."""


async def reserve(
    ctx: CallContext, request: OutgoingRequest, place: RequestPlace
) -> tuple[OutgoingRequest, Reservation]:
    """Hold the request's worst case, with `max_tokens` lowered to what the budget leaves.

    What other requests hold may come back: this one waits for it, rather than fail or be cut short. What a request
    may cost is held like its tokens; where it can't be known, a warning says so once a run and model.
    """
    budget = ctx.run.budget
    if is_replayed(ctx, place):
        return request, budget.count_replayed()
    if not budget.counts_tokens and not budget.counts_cost:
        return request, budget.reserve()
    counted = None if is_free(request.model) and not budget.counts_tokens else await _counted_tokens(request)
    bound = cost_bound(request, counted) if budget.counts_cost else None
    if budget.counts_cost and bound is None:
        _warn_of_cost(ctx, request)
    price = bound or CostBound(0.0, 0.0)
    sent = 0
    if budget.counts_tokens:
        sent = counted if counted is not None else estimate_request_tokens(request.messages, request.parameters)
    limit = (request.settings or {}).get("max_tokens")
    while True:
        left = budget.remaining_output(sent, price.input_usd, price.token_usd)
        most = limit or DEFAULT_OUTPUT
        try:
            if left is None:
                return request, budget.reserve(sent, (limit or 0) if budget.counts_tokens else 0)
            if left >= most or not budget.is_held:
                allowed = max(min(most, left), 0)
                # A request for one token less would be refused for its length, and not for what it costs.
                cost = price.of(max(allowed, 1)) if bound is not None else None
                held = budget.reserve(sent, allowed if budget.counts_tokens else 0, cost)
                settings = merge_model_settings(request.settings, ModelSettings(max_tokens=allowed))
                return replace(request, settings=settings, own_settings=request.settings or {}), held
        except BudgetError:
            if not budget.is_held:
                raise
        await budget.wait_for_release()


def _warn_of_cost(ctx: CallContext, request: OutgoingRequest) -> None:
    name = ctx.runtime.pool.name_of(component_models(request.model)[0])
    if name not in ctx.run.budget.unbounded:
        ctx.run.budget.unbounded.add(name)
        ctx.warn(
            f"what a request to {name} costs is known only when it has been answered (it has files, tools of the "
            f"provider or no known price), so the budget in US dollars may be exceeded by the last requests"
        )


async def _counted_tokens(request: OutgoingRequest) -> int | None:
    """The tokens that a request sends, as its model counts them; None if it can't."""
    try:
        async with asyncio.timeout(COUNTING_TIME):
            counted = await request.model.count_tokens(request.messages, request.settings, request.parameters)
    except Exception:  # noqa: BLE001 (most can't count; whether the provider answers, the request itself will show)
        return None
    return counted.input_tokens
