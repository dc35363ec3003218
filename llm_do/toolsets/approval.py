"""Approvals for toolsets: pre-approving tools from Python, and the policy around one toolset used outside a Runtime.

Inside a `Runtime` every tool passes its policy already; `ApprovalToolset` is for a PydanticAI agent of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai import RunContext, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.concurrency.event_loops import PerLoop
from llm_do.errors import AbortedError
from llm_do.policy.decision import answer_automatically, decide, deny_without_approver
from llm_do.policy.digest import call_digest
from llm_do.policy.rules import Policy, build_policy
from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.runtime.approval.approver import call_info
from llm_do.runtime.approval.broker import (
    ApprovalCallback,
    ApprovalDecision,
    ApprovalMode,
    ApprovalRequest,
    Broker,
    Question,
    RunApprovalPolicy,
)
from llm_do.runtime.approval.toolset_opinion import describe_safely, stricter_decision, toolset_decision
from llm_do.runtime.record.results import arguments_data
from llm_do.runtime.tools.approval_requirement import ApprovalRequirement, requirement_of_wrappers, requirement_raised
from llm_do.runtime.tools.stamped_tools import StampedToolset
from llm_do.runtime.tools.stamped_tools import approval_config as get_toolset_approval_config
from llm_do.runtime.tools.stamped_tools import set_approval_config as set_toolset_approval_config
from llm_do.runtime.tools.traits import ToolTraits, traits_of

__all__ = ["ApprovalToolset", "get_toolset_approval_config", "set_toolset_approval_config"]


class ApprovalToolset(WrapperToolset[Any]):
    """Lets calls to one toolset pass only as a policy says.

    Args:
        wrapped: The toolset.
        approvals: A mode, an async callback that asks a person, or a `RunApprovalPolicy`.
        rules: Rules as the manifest's `approvals` has them.

    Example:
        >>> from pydantic_ai.toolsets import FunctionToolset
        >>> guarded = ApprovalToolset(FunctionToolset(), approvals="reject_all", rules={"allow": ["read_*"]})
    """

    def __init__(
        self,
        wrapped: AbstractToolset[Any],
        approvals: ApprovalMode | ApprovalCallback | RunApprovalPolicy = "prompt",
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(StampedToolset(wrapped, wrapped.id or type(wrapped).__name__))
        self._who = RunApprovalPolicy.of(approvals)
        self._policy, faults = build_policy(rules or {})
        if faults:
            raise ValueError("; ".join(fault.message for fault in faults))
        self._remembered: set[str] = set()
        callback = self._who.approval_callback
        self._brokers = None if callback is None else PerLoop(partial(Broker, callback))

    @property
    def policy(self) -> Policy:
        """The rules calls are decided by."""
        return self._policy

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool if policy or a person allows it; else the model is told of the denial."""
        traits = traits_of(tool.tool_def.metadata) or ToolTraits()
        decision = await self._decided(
            name, tool_args, ctx, traits, requirement_of_wrappers(traits, ctx, tool.tool_def)
        )
        if decision.effect != "allow":
            return ToolDenied(f"{decision.reason}. Do not retry this call.")
        if not decision.approves:
            try:
                return await super().call_tool(name, tool_args, ctx, tool)
            except ApprovalRequired as error:
                decision = await self._decided(name, tool_args, ctx, traits, requirement_raised(error))
            if decision.effect != "allow":
                return ToolDenied(f"{decision.reason}. Do not retry this call.")
        return await super().call_tool(name, tool_args, replace(ctx, tool_call_approved=True), tool)

    async def _decided(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        traits: ToolTraits,
        wants: ApprovalRequirement | None,
    ) -> Decision:
        info = _info(name, tool_args, ctx, traits)
        wanted = wants(tool_args) if wants is not None else None
        own = stricter_decision(toolset_decision(traits, info), wanted)
        decision = decide(info, self._policy, metadata=traits.approval, toolset=own, harmless=traits.facts.reason)
        if decision.effect == "ask":
            decision = await self._answer(info, decision, ctx, traits)
            again = _info(name, tool_args, ctx, traits)
            if call_digest(again) != call_digest(info) or again.restrictive != info.restrictive:
                decision = Decision(
                    "deny", f"the arguments of {name} changed while it was asked about", source="blocked"
                )
        return decision

    async def _answer(
        self, info: ToolCallInfo, decision: Decision, ctx: RunContext[Any], traits: ToolTraits
    ) -> Decision:
        bound = call_digest(info)

        def known() -> Decision | None:
            remembered = bound in self._remembered
            return answer_automatically(decision, remembered=remembered, options=(), mode=self._who.mode, call=info)

        def keep(given: ApprovalDecision) -> None:
            # There is no project whose file could keep it: an answer for good is one for this session.
            if given.answer in ("session", "always"):
                self._remembered.add(bound)

        given = known()
        if given is not None:
            return given
        if self._brokers is None:
            return deny_without_approver(decision, info)
        broker = self._brokers.get()

        async def request() -> ApprovalRequest:
            return ApprovalRequest(
                id=broker.next_id(),
                run_id=ctx.run_id or "",
                call_id=ctx.run_id or "",
                tool_call_id=ctx.tool_call_id or "",
                agent=info.agent,
                agent_path=info.path,
                tool_name=info.tool_name,
                args=info.args,
                reason=decision.reason,
                rule=decision.rule,
                description=await describe_safely(traits.describe, info.args) or "",
                diff=await describe_safely(traits.diff, info.args),
                digest=bound,
                call=info,
                person_only=decision.person_only,
            )

        said = await broker.ask(Question((ctx.run_id or "", info.path, bound), known, request, keep))
        if isinstance(said, Decision):
            return said
        if said.answer == "abort":
            raise AbortedError(f"a person ended the run at {info.tool_name}", agent_path=info.path)
        if said.answer == "deny":
            note = f": {said.note}" if said.note else ""
            return Decision("deny", f"a person denied {info.tool_name}{note}", source="person")
        return Decision("allow", "a person allowed it", source="person")


def _info(name: str, tool_args: Mapping[str, Any], ctx: RunContext[Any], traits: ToolTraits) -> ToolCallInfo:
    """The call as rules see it; its arguments are a copy."""
    data = dict(arguments_data(tool_args))
    agent = (ctx.agent.name if ctx.agent is not None else None) or "agent"
    return call_info(name, traits, data, agent=agent, path=agent, depth=1)
