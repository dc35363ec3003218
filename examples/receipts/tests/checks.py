"""Checks of the tests beside it: each is called with an output as JSON data, and fails by raising."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def adds_up(report: dict[str, Any]) -> None:
    """The total of each currency is the sum of its receipts."""
    for currency, total in report["totals"].items():
        amounts = [Decimal(line["amount"]) for line in report["receipts"] if line["currency"] == currency]
        assert sum(amounts) == Decimal(total), f"{currency}: {amounts} don't add up to {total}"
