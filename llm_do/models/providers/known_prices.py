"""Check by a model's name whether its price is known."""

from __future__ import annotations

from llm_do.models.providers.model_names import BUILT_IN, split_name

__all__ = ["price_known", "worst_price"]

_FREE = frozenset({*BUILT_IN, "function"})
_SAME_PRICES = {
    "azure-responses": "azure",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""Prefixes of a provider's other APIs, with the provider's name in the price list."""


def price_known(name: str) -> bool:
    """Whether PydanticAI's price list has a model; models that run in this process are free.

    It needs neither a key nor the network.

    Example:
        >>> price_known("openai:gpt-5-mini"), price_known("openai:no-such-model"), price_known("script:answers.yaml")
        (True, False, True)
    """
    prefix, rest = split_name(name)
    if prefix in _FREE:
        return True
    from genai_prices import Usage, calc_price

    provider = prefix.removeprefix("gateway/")
    try:
        calc_price(Usage(input_tokens=1, output_tokens=1), rest, provider_id=_SAME_PRICES.get(provider, provider))
    except Exception:  # noqa: BLE001 (a price that can't be calculated is unknown)
        return False
    return True


def worst_price(name: str, max_tokens: int | None) -> float | None:
    """Return what one request to a model may cost in US dollars: a full context, and as much output as it may have.

    Args:
        name: The model.
        max_tokens: The most output tokens; None for as many as its context has.

    Returns:
        The price; None if it or the size of the context isn't known.

    Example:
        >>> worst_price("script:answers.yaml", None), worst_price("openai:no-such-model", None)
        (0.0, None)
        >>> 0.1 < worst_price("openai:gpt-5-mini", 1000) < worst_price("openai:gpt-5-mini", None) < 2
        True
    """
    prefix, rest = split_name(name)
    if prefix in _FREE:
        return 0.0
    from genai_prices import Usage, calc_price

    provider = prefix.removeprefix("gateway/")
    provider = _SAME_PRICES.get(provider, provider)
    try:
        window = calc_price(Usage(input_tokens=1, output_tokens=1), rest, provider_id=provider).model.context_window
        if window is None:
            return None
        output = max_tokens if max_tokens is not None else window
        usages = [
            Usage(input_tokens=window, cache_write_tokens=written, output_tokens=output) for written in (0, window)
        ]
        return max(float(calc_price(usage, rest, provider_id=provider).total_price) for usage in usages)
    except Exception:  # noqa: BLE001 (a price that can't be calculated is unknown)
        return None
