"""Whether policy allows what a tool's code would do next as a call of its own: the page that it is redirected to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_do.policy.digest import call_digest
from llm_do.runtime.approval.pending_call import PendingCall, makers_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["is_allowed"]


async def is_allowed(ctx: CallContext, tool_name: str, traits: ToolTraits, args: Mapping[str, Any]) -> bool:
    """Whether a call of the tool with these arguments would run without asking a person, by the rules of the run."""
    config, approver = ctx.frame.config, ctx.runtime.approver
    call = PendingCall(
        tool_name=tool_name,
        traits=traits,
        read=lambda: args,
        agent=config.name,
        path=config.path,
        depth=config.depth,
        makers=makers_of(ctx.project, ctx.runtime.registry, config.path),
        warn=ctx.warn,
    )
    info = call.info()
    decision = await approver.decide(call, info)
    if decision.effect == "ask":
        decision = approver.automatic_answer(info, decision, call_digest(info)) or decision
    return decision.effect == "allow"
