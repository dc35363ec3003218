"""The support agent's tools: orders, preferences, refunds."""

from __future__ import annotations

from pydantic_ai import RunContext

from llm_do import CallContext, ToolError, tool

__all__ = ["find_order", "refund", "remember_preference"]

ORDERS = {"A-1001": {"item": "chair", "price": 249.0, "status": "delivered"}}
HISTORY = [f"2026-11-{day:02}: seen in depot {day % 7}" for day in range(1, 29)]


def preferences(ctx: CallContext) -> str | None:
    """Add the customer's preferences to the instructions of each turn."""
    known = ctx.user.state.get("preferences", {})
    return "The customer prefers: " + ", ".join(f"{key} {value}" for key, value in known.items()) if known else None


@tool
def find_order(ctx: RunContext[CallContext], number: str) -> dict[str, object]:
    """Find an order by its number, with its delivery history."""
    if number not in ORDERS:
        raise ToolError(f"there is no order {number}")
    ctx.deps.thread.state["order"] = number
    return {"number": number, **ORDERS[number], "way": HISTORY}


@tool
def remember_preference(ctx: RunContext[CallContext], key: str, value: str) -> str:
    """Remember what the customer prefers, in this conversation and all later ones."""
    ctx.deps.user.state.setdefault("preferences", {})[key] = value
    return f"remembered: {key} {value}"


@tool
def refund(ctx: RunContext[CallContext], number: str, amount: float) -> str:
    """Refund part of an order's price."""
    paid = ctx.deps.thread.state.setdefault("refunds", [])
    paid.append({"number": number, "amount": amount})
    return f"refunded {amount:.2f} euros of order {number}"
