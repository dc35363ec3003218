"""What responses cost, by the library's price data; and whether a model's price is known before a request."""

from __future__ import annotations

import math
from dataclasses import replace

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage

from llm_do.errors import BudgetError
from llm_do.models.composites import component_models
from llm_do.runtime.record.results import Usage

__all__ = ["IN_PROCESS", "check_price", "highest_price", "is_free", "possible_tokens", "response_usage"]

IN_PROCESS = frozenset({"test", "function", "script", "local"})
"""Systems of models that run in this process, cost nothing, and count tokens as they like."""


MOST_UNLISTED = 1000
"""Models without a price that are remembered: to find out that there is none takes as long as the rest of a request."""

MOST_TOKENS = 10**12
"""The most tokens that a response can have used: sums of such counts fit into every store."""

_unlisted: set[tuple[str, str | None, str | None]] = set()


def possible_tokens(count: object) -> int:
    """A number of tokens as a provider reports it; 0, as if it didn't, if no request can have used so many.

    Example:
        >>> possible_tokens(12), possible_tokens(-12), possible_tokens(10**30), possible_tokens("12")
        (12, 0, 0, 0)
    """
    return count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0


def response_usage(response: ModelResponse, tokens: RequestUsage | None = None) -> Usage:
    """What one response used, its price included where it is known.

    Args:
        response: The response.
        tokens: What it used, where its provider doesn't say.
    """
    if tokens is not None:
        response = replace(response, usage=tokens)
    read, written = possible_tokens(response.usage.input_tokens), possible_tokens(response.usage.output_tokens)
    return Usage(requests=1, input_tokens=read, output_tokens=written, cost_usd=_price(response))


def is_free(model: Model) -> bool:
    """Whether a model runs in this process, so that it costs nothing though it has no price."""
    return all(each.system in IN_PROCESS for each in component_models(model))


def check_price(limit: float | None, model: Model) -> None:
    """Refuse a model that can't be held to a budget in US dollars.

    A project's own model without an address may report the cost with its response.
    """
    if limit is None:
        return
    for each in component_models(model):
        if each.base_url is not None and each.system not in IN_PROCESS and not _listed(each):
            raise BudgetError(
                f"the price of {each.system}:{each.model_name} is unknown, so a budget in US dollars can't be enforced",
                hint="Limit tokens or requests instead, or use a model with a known price.",
            )


def highest_price(model: Model, usage: RequestUsage, *, tiered: bool) -> float | None:
    """Return what this usage of a model costs; None if its price is unknown.

    Args:
        model: The model.
        usage: What is used.
        tiered: Whether the request asks for a service tier; then it is the price of the most expensive one.
    """
    name, url, system = model.model_name, model.base_url, model.system
    response = ModelResponse([], usage=usage, model_name=name, provider_url=url, provider_name=system)
    standard = _price(response)
    if standard is None or not tiered:
        return standard
    contexts = [variant.when for variant in response.cost().model.price_variants or ()]
    prices = [_price(replace(response, provider_details=dict(context))) for context in contexts]
    return max([standard, *(price for price in prices if price is not None)])


def _listed(model: Model) -> bool:
    return highest_price(model, RequestUsage(input_tokens=1, output_tokens=1), tiered=False) is not None


def _price(response: ModelResponse) -> float | None:
    """What a response cost; None if that is unknown, or is no amount that a budget can count."""
    price = _stated_price(response)
    return price if price is not None and 0 <= price < math.inf else None


def _stated_price(response: ModelResponse) -> float | None:
    if response.usage.cost is not None:
        return float(response.usage.cost)
    if not response.model_name:
        return None
    name = response.model_name, response.provider_url, response.provider_name
    if name in _unlisted:
        return None
    try:
        return float(response.cost().total_price)
    except LookupError:
        if len(_unlisted) < MOST_UNLISTED:
            _unlisted.add(name)
    except Exception:  # noqa: BLE001 (a price that can't be computed is an unknown one, and doesn't end the run)
        pass
    return None
