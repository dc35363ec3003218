"""What a request used where its provider doesn't say, or reports impossible numbers.

It is estimated, so that budgets count it; one warning a run and model says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from llm_do._warnings import suppress_warning
from llm_do.models.composites import component_models
from llm_do.models.token_estimates import estimate_request_tokens, estimate_response_tokens
from llm_do.runtime.record.results import Usage
from llm_do.runtime.request.cost import is_free, possible_tokens, response_usage

if TYPE_CHECKING:
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.request_outcome import RequestOutcome
    from llm_do.runtime.record.transport import OutgoingRequest

__all__ = ["suppress_count_warnings", "usage_of_cut_stream", "usage_of_response", "warn_of_estimate"]

_COUNT_WARNINGS = re.compile(
    r"Failed to extract usage with|Failed to get cost:|Pydantic serializer warnings:[\s\S]*field_name='\w*tokens"
)


def suppress_count_warnings() -> None:
    """Suppress what libraries warn of when they read counts that are none: `warn_of_estimate` says it, once."""
    suppress_warning(_COUNT_WARNINGS, Warning)


def usage_of_response(request: OutgoingRequest, response: ModelResponse) -> Usage:
    """What a response used: as its provider says, otherwise estimated."""
    reported = response.usage
    read, written = possible_tokens(reported.input_tokens), possible_tokens(reported.output_tokens)
    are_possible = (read, written) == (reported.input_tokens, reported.output_tokens)
    if (read and written) or (are_possible and is_free(request.model)):
        return response_usage(response)
    estimate = RequestUsage(
        input_tokens=read or estimate_request_tokens(request.messages, request.parameters),
        output_tokens=written or estimate_response_tokens(response),
        cost=reported.cost,
    )
    return response_usage(response, estimate)


def usage_of_cut_stream(request: OutgoingRequest, text: str) -> Usage:
    """What a stream used that ended before its provider could say: its input, and the text that came."""
    if not text or is_free(request.model):
        return Usage(requests=1)
    model = component_models(request.model)[0]
    response = ModelResponse(
        [TextPart(text)], model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    estimate = RequestUsage(
        input_tokens=estimate_request_tokens(request.messages, request.parameters),
        output_tokens=estimate_response_tokens(response),
    )
    return response_usage(response, estimate)


def warn_of_estimate(ctx: CallContext, request: OutgoingRequest, outcome: RequestOutcome) -> None:
    """Warn if the usage of a response was estimated, once per run and model."""
    if outcome.response is None:
        return
    reported, used, known = outcome.response.usage, outcome.usage, ctx.run.budget.estimated
    if reported.input_tokens == used.input_tokens and reported.output_tokens == used.output_tokens:
        return
    name = ctx.runtime.pool.name_of(component_models(request.model)[0])
    if name not in known:
        known.add(name)
        ctx.warn(f"{name} doesn't say how many tokens it uses: they are estimated, about four characters a token")
