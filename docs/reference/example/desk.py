"""The desk's tools, and what the project's files refer to besides."""

from __future__ import annotations

from datetime import date

from llm_do import GuardError, Update, tool

__all__ = ["book", "look_up"]


@tool(approval="allow")
def look_up(town: str):
    """Look the price of a night up."""
    return Update(f"a night in {town} costs 80 euros", price=80)


@tool
def book(town: str, nights: int) -> str:
    """Book a hotel."""
    return f"booked {nights} nights in {town}"


def judge(call) -> str | None:
    """Say no to long stays, and nothing to the rest."""
    return "reject" if call.tool_name == "book" and call.args.get("nights", 0) > 30 else None


def staple(outputs: list[str]) -> str:
    """Make one text of the outputs of steps that ran side by side."""
    return "\n---\n".join(outputs)


async def today(ctx) -> str:
    """Tell agents what day it is, and who they are in this run."""
    day = await ctx.step("day", lambda: date.today().isoformat())
    return f"Today is {day}; you are {ctx.path}."


def within_reason(journey) -> None:
    """Refuse journeys that no one pays for."""
    if journey.nights > 30:
        raise GuardError(f"{journey.nights} nights are too many")


def rounded(plan):
    """Round the price of a plan."""
    return plan.model_copy(update={"price": round(plan.price)})


def started(agent) -> None:
    """Hear that an agent's run begins."""


def finished(agent) -> None:
    """Hear that it came to its end."""


def failed(agent, error) -> None:
    """Hear that it ended early."""


def before_request(agent, messages) -> None:
    """Hear of a model request."""


def after_response(agent, response) -> None:
    """Hear of its response."""


def before_tool(agent, tool_name, arguments) -> None:
    """Hear of a tool call before it is decided about."""


def after_tool(agent, tool_name, result) -> None:
    """Hear of it after it ran."""
