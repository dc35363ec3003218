"""Whether a model's price is known, by its name alone. The runtime computes what responses cost."""

from __future__ import annotations

from llm_do.models.providers.model_names import BUILT_IN, split_name

__all__ = ["price_known"]

_FREE = frozenset({*BUILT_IN, "function"})
_SAME_PRICES = {
    "azure-responses": "azure",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""Prefixes that are another way to a provider's models, with the name that the price list has for it."""


def price_known(name: str) -> bool:
    """Whether the price list that comes with PydanticAI has a model; those that run in this process cost nothing.

    No key is needed and nothing is fetched.

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
    except Exception:  # noqa: BLE001 (a price that can't be worked out is an unknown one)
        return False
    return True
