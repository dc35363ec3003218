"""Approvals for toolsets: pre-approving tools from Python, and the policy around one toolset used outside a Runtime.

Inside a `Runtime` the policy already applies to every tool; `ApprovalToolset` is for a PydanticAI agent outside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai import RunContext, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.files.refusals import ContentChangedError
from llm_do.policy.rules import Policy, build_policy
from llm_do.runtime.approval.approver import TRIES, Approver, denial_text
from llm_do.runtime.approval.broker import ApprovalCallback, ApprovalMode, RunApprovalPolicy
from llm_do.runtime.approval.pending_call import BoundToFailError, PendingCall
from llm_do.runtime.tools.approval_requirement import required_by_error, required_by_wrappers
from llm_do.runtime.tools.current_tool import APPROVED_BASIS
from llm_do.runtime.tools.stamped_tools import (
    StampedToolset,
    approval_config as get_toolset_approval_config,
    set_approval_config as set_toolset_approval_config,
)
from llm_do.runtime.tools.traits import ToolTraits, traits_of
from llm_do.text.json_data import arguments_data

__all__ = ["ApprovalToolset", "get_toolset_approval_config", "set_toolset_approval_config"]


class ApprovalToolset(WrapperToolset[Any]):
    """Applies a policy to the calls of one toolset.

    Args:
        wrapped: The toolset.
        approvals: A mode, a callback that asks a person, or a `RunApprovalPolicy`. There is no project to
            save answers in: a permanent one applies to the session.
        rules: Rules in the format of the manifest's `approvals`.

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
        policy, faults = build_policy(rules or {})
        if faults:
            raise ValueError("; ".join(fault.message for fault in faults))
        self._approver = Approver(policy, RunApprovalPolicy.of(approvals))

    @property
    def policy(self) -> Policy:
        """The rules that decide about calls."""
        return self._approver.policy

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool if the policy or a person allows it; otherwise return the denial to the model."""
        traits = traits_of(tool.tool_def.metadata) or ToolTraits()
        agent = (ctx.agent.name if ctx.agent is not None else None) or "agent"
        call = PendingCall(
            tool_name=name,
            traits=traits,
            read=partial(_arguments, tool_args),
            agent=agent,
            path=agent,
            requirement=required_by_wrappers(traits, ctx, tool.tool_def, tool_args),
            run_id=ctx.run_id or "",
            call_id=ctx.run_id or "",
            tool_call_id=ctx.tool_call_id or "",
            schema=tool.tool_def.parameters_json_schema,
        )
        for _ in range(TRIES):
            try:
                decision, _ = await self._approver.approve(call)
            except BoundToFailError as error:
                raise ToolFailed(error.message) from error
            if decision.effect != "allow":
                return ToolDenied(denial_text(decision))
            token = APPROVED_BASIS.set(decision.basis)
            try:
                run = replace(ctx, tool_call_approved=True) if decision.approves else ctx
                return await super().call_tool(name, tool_args, run, tool)
            except ApprovalRequired as error:
                if decision.approves:
                    raise
                call = replace(call, requirement=required_by_error(error))
            except ContentChangedError:
                if decision.basis is None:
                    raise
            finally:
                APPROVED_BASIS.reset(token)
        raise ToolFailed("what it would change was changed each time, just before it ran")


def _arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(arguments_data(args))
