"""The calculator's tools: plain functions, exported by name."""

from __future__ import annotations

from llm_do import ToolError


def multiply(count: int, price: float) -> float:
    """Multiply a number of things by the price of one.

    Args:
        count: The number of things.
        price: The price of one.
    """
    if count < 0:
        raise ToolError(f"the count can't be negative, it was {count}")
    return count * price


def add_percent(amount: float, percent: float) -> float:
    """Add a percentage, such as VAT, to an amount.

    Args:
        amount: The amount without the percentage.
        percent: 19 for 19 %.
    """
    return round(amount * (100 + percent) / 100, 2)


TOOLS = [multiply, add_percent]
