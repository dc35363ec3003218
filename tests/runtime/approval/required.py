"""Tools that require approval through PydanticAI's mechanisms, and a record of what was sent."""

from __future__ import annotations

from typing import Any

from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext, Tool as PydanticTool

from llm_do import Toolkit, Update, tool
from llm_do.toolkits import Context
from tests.support.runs import agent
from tests.support.scripted import call, script

__all__ = [
    "SEEN",
    "careful",
    "kit",
    "late",
    "letters",
    "policy",
    "send",
    "sender",
    "to_the_boss",
]

SEEN: list[tuple[str, bool]] = []
"""The recipients, and whether the tool saw that the call was approved."""


def send(ctx: RunContext[Any], to: str) -> str:
    """Send a letter."""
    SEEN.append((to, ctx.tool_call_approved))
    return f"sent to {to}"


def careful(ctx: RunContext[Any], to: str) -> str:
    """Send a letter; a letter to the boss needs approval."""
    if to == "boss" and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"reason": "it goes to the boss"})
    SEEN.append((to, ctx.tool_call_approved))
    return f"sent to {to}"


def kit() -> Toolkit:
    """Return a toolkit whose tool changes its context and then raises."""
    made = Toolkit("kit", context=Context(initial_data={"sent": []}))

    @made.tool(name="careful")
    def gated(ctx: Any, to: str) -> Update:
        """Send a letter; a letter to the boss needs approval."""
        ctx.state["sent"] = [*ctx.state["sent"], to]
        return Update(careful(ctx, to), sent=ctx.state["sent"])

    return made


def to_the_boss(ctx: RunContext[Any], tool_def: Any, args: dict[str, Any]) -> bool:
    return args["to"] == "boss"


def late(*, allow: bool = False) -> dict[str, Any]:
    """Return an agent's tools: a function that raises."""
    return {"tools": [tool(approval="allow")(careful) if allow else careful]}


def sender(to: str = "boss", name: str = "send", **fields: Any) -> Any:
    return agent("main", script([call(name, to=to)], "fin"), **fields)


def letters(**options: Any) -> FunctionToolset[Any]:
    return FunctionToolset([PydanticTool(send, **options)])


def policy(default: str = "allow", **rules: Any) -> Any:
    from llm_do.policy.rules import build_policy

    made, faults = build_policy({"default": default, **rules})
    assert not faults
    return made
