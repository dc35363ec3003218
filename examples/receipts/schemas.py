"""The extractor's output. The model copies words; Python turns them into dates and numbers."""

from __future__ import annotations

import re
from datetime import date as Date  # noqa: N812
from decimal import Decimal

from pydantic import BaseModel, Field, model_validator

from llm_do import AgentArgs

SYMBOLS = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY"}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
TOTAL = r"^(EUR|USD|GBP|JPY|CHF|SEK|€|\$|£|¥) ?[0-9]{1,3}([.,][0-9]{3})?([.,][0-9]{2})?$"


def read_date(text: str, *, month_first: bool = False) -> Date:
    """Read a date in any of the formats that receipts use.

    Args:
        text: Such as `3.11.2026`, `2026/11/05`, `4 November 2026` or `Nov 12, 2026`, possibly followed by a time.
        month_first: Whether `11/06/2026` is November 6.

    Raises:
        ValueError: There is no such date in the text.
    """
    if found := re.search(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", text):
        year, month, day = (int(part) for part in found.groups())
    elif found := re.search(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})\b", text):
        first, second, year = (int(part) for part in found.groups())
        month, day = (first, second) if month_first else (second, first)
    elif found := re.search(r"(\d{1,2})\.? ([A-Za-z]{3})[a-z]*\.?,? (\d{4})", text):
        day, month, year = int(found[1]), read_month(found[2]), int(found[3])
    elif found := re.search(r"([A-Za-z]{3})[a-z]*\.? (\d{1,2}),? (\d{4})", text):
        month, day, year = read_month(found[1]), int(found[2]), int(found[3])
    else:
        raise ValueError(f"there is no date in {text!r}")
    return Date(year + 2000 if year < 100 else year, month, day)


def read_month(name: str) -> int:
    """The number of a month, from the first three letters of its name."""
    return MONTHS.index(name.lower()) + 1


def read_amount(text: str) -> Decimal:
    """Read an amount written as `1.288,90` or `1,288.90`: two digits at the end are cents."""
    digits = re.sub(r"[^0-9.,]", "", text)
    whole, cents = (digits[:-3], digits[-2:]) if re.search(r"[.,]\d{2}$", digits) else (digits, "")
    return Decimal(f"{re.sub('[.,]', '', whole)}.{cents}")


class Request(AgentArgs):
    """The project's input: the folder of receipts, relative to the project."""

    folder: str = "receipts"


class Receipt(BaseModel):
    """What the model copies out of one receipt, and what that means.

    The pattern makes it write a currency before the amount, which helps a small model to find the right number.
    """

    merchant: str = Field(min_length=1, max_length=40)
    date: str = Field(max_length=20)
    total: str = Field(pattern=TOTAL)

    @model_validator(mode="after")
    def has_a_date(self) -> Receipt:
        """Reject a date that can't be read, so that the model tries again."""
        self.day  # noqa: B018
        return self

    @property
    def currency(self) -> str:
        """The currency's code."""
        written = self.total.strip("0123456789., ")
        return SYMBOLS.get(written, written)

    @property
    def amount(self) -> Decimal:
        """The total as a number."""
        return read_amount(self.total)

    @property
    def day(self) -> Date:
        """The date; amounts in dollars are assumed to be American, with the month first."""
        return read_date(self.date, month_first=self.currency == "USD")
