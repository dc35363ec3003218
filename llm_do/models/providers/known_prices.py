"""Check by a model's name whether its price is known."""

from __future__ import annotations

from llm_do.models.providers.model_names import BUILT_IN, split_name

__all__ = ["price_known"]

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
