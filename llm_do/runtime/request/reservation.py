"""What a request may cost at worst, reserved before it is sent."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pydantic_ai.settings import ModelSettings, merge_model_settings

from llm_do.errors import BudgetError
from llm_do.models.token_estimates import estimate_request_tokens
from llm_do.runtime.context.budget import BudgetMeter, Reservation
from llm_do.runtime.record.transport import OutgoingRequest

__all__ = ["reserve"]

DEFAULT_OUTPUT = 16_384
"""Output tokens that a request is held to under a budget where its agent sets no `max_tokens`: large models refuse
numbers far above what they can produce, and parallel requests have to share what is left."""

COUNTING_TIME = 10.0
"""Seconds that a model may take to count a request's tokens; then they are estimated."""


async def reserve(budget: BudgetMeter, request: OutgoingRequest) -> tuple[OutgoingRequest, Reservation]:
    """Hold the request's worst case, with `max_tokens` lowered to what the budget leaves.

    Tokens that other requests hold may come back: this one waits for them, rather than fail or be cut short.
    """
    if not budget.counts_tokens:
        return request, budget.reserve()
    sent = await _input_tokens(request)
    limit = (request.settings or {}).get("max_tokens")
    while True:
        left = budget.remaining_output(sent)
        most = limit or DEFAULT_OUTPUT
        try:
            if left is None:
                return request, budget.reserve(sent, limit or 0)
            if left >= most or not budget.holds_tokens:
                allowed = max(min(most, left), 0)
                held = budget.reserve(sent, allowed)
                settings = merge_model_settings(request.settings, ModelSettings(max_tokens=allowed))
                return replace(request, settings=settings, own_settings=request.settings or {}), held
        except BudgetError:
            if not budget.holds_tokens:
                raise
        await budget.wait_for_release()


async def _input_tokens(request: OutgoingRequest) -> int:
    """The tokens that a request sends: as its model counts them, else estimated."""
    messages = request.messages
    try:
        async with asyncio.timeout(COUNTING_TIME):
            counted = await request.model.count_tokens(messages, request.settings, request.parameters)
    except Exception:  # noqa: BLE001 (most can't count; whether the provider answers, the request itself will show)
        return estimate_request_tokens(messages, request.parameters)
    return counted.input_tokens
