"""The entry: lists the receipts, has the agent read each one, and adds them up. Whatever has to be right is Python."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel
from schemas import Receipt, Request

from llm_do import CallContext, LlmDoError

AT_ONCE = 4


class Line(BaseModel):
    """One receipt in the report."""

    file: str
    merchant: str
    date: str
    currency: str
    amount: Decimal


class Report(BaseModel):
    """All receipts, their totals, and the files that could not be read."""

    receipts: list[Line]
    totals: dict[str, Decimal]
    unread: dict[str, str]

    def __str__(self) -> str:
        rows = [(line.date, line.merchant, f"{line.amount:,.2f}", line.currency) for line in self.receipts]
        lines = [f"{date}  {who:<40}  {amount:>10} {code}" for date, who, amount, code in rows]
        lines.append("")
        lines += [f"{'total ' + code:<52}{amount:>12,.2f} {code}" for code, amount in self.totals.items()]
        lines += [f"not read: {file}: {why}" for file, why in self.unread.items()]
        return "\n".join(lines)


async def read(path: Path, ctx: CallContext, slots: asyncio.Semaphore) -> Line | str:
    """Have the extractor read one file; return the reason if it can't."""
    async with slots:
        try:
            text = await asyncio.to_thread(path.read_text, encoding="utf-8")
            receipt: Receipt = await ctx.call("extractor", text.strip(), label=path.name)
        except (UnicodeDecodeError, LlmDoError) as error:
            return str(error)
    return Line(
        file=path.name,
        merchant=receipt.merchant,
        date=receipt.day.isoformat(),
        currency=receipt.currency,
        amount=receipt.amount,
    )


async def main(input: Request, ctx: CallContext) -> Report:
    """Read every receipt in the folder, several at a time."""
    paths = sorted((ctx.project.root / input.folder).glob("*.txt"))
    slots = asyncio.Semaphore(AT_ONCE)
    found = await asyncio.gather(*(read(path, ctx, slots) for path in paths))
    lines = [line for line in found if isinstance(line, Line)]
    totals: defaultdict[str, Decimal] = defaultdict(Decimal)
    for line in lines:
        totals[line.currency] += line.amount
    unread = {path.name: why for path, why in zip(paths, found, strict=True) if isinstance(why, str)}
    return Report(
        receipts=sorted(lines, key=lambda line: line.date), totals=dict(sorted(totals.items())), unread=unread
    )
