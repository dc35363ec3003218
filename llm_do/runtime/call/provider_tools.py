"""Whether an agent may have the tools that its provider runs: no one can be asked when they are called.

So it is decided when the agent is called, as if the tool were called without arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do.errors import EntryError
from llm_do.policy.digest import call_digest
from llm_do.runtime.approval.pending_call import PendingCall, makers_of
from llm_do.runtime.tools.traits import ToolTraits

if TYPE_CHECKING:
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["check_provider_tools"]


async def check_provider_tools(ctx: CallContext, spec: AgentSpec) -> None:
    """Decide about each tool that an agent's provider runs.

    Raises:
        EntryError: One of them is denied, or needs an approval that only a person could give.
    """
    approver = ctx.runtime.approver
    for tool in spec.server_side_tools:
        call = PendingCall(
            tool.tool_type,
            ToolTraits(tool.facts, tool=tool.tool_type),
            dict[str, object],
            spec.name,
            ctx.path,
            ctx.depth,
            makers_of(ctx.project, ctx.runtime.registry, ctx.path),
            warn=ctx.warn,
        )
        info = call.info()
        decision = await approver.decide(call, info)
        if decision.effect == "ask":
            answer = approver.automatic_answer(info, decision, call_digest(info))
            decision = answer if answer is not None else decision
        if decision.effect != "allow":
            asked = "" if decision.effect == "deny" else ", and no one can be asked where the provider runs it"
            raise EntryError(
                f"agent {spec.name!r} can't have {tool.tool_type}: {decision.reason}{asked}",
                hint=f'Allow it with the rule "{tool.tool_type}", or remove the tool.',
                agent_path=ctx.path,
            )
