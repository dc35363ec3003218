"""May this call be made: collects what policy needs, lets it decide, and has what is asked answered.

The decision itself is `llm_do.policy.decide`, a pure function; this module does its reading, asking and bookkeeping.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from llm_do.errors import AbortedError, PermissionDeniedError
from llm_do.policy.decide import answer, decide, nobody_to_ask
from llm_do.policy.digest import call_digest
from llm_do.policy.values import Decision, Resolved, ToolCallInfo
from llm_do.runtime.approvals import ApprovalRequest
from llm_do.runtime.events import ApprovalRequestedEvent, ApprovalResolvedEvent
from llm_do.runtime.results import ApprovalRecord, as_mapping

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.runtime.context import CallContext
    from llm_do.runtime.traits import ToolTraits

__all__ = ["approve"]

POLICY_SECONDS = 1.0
"""How long a project's policy function may take; longer is a rejection."""


async def approve(ctx: CallContext, call: ToolCallPart, traits: ToolTraits, args: dict[str, Any]) -> str | None:
    """Decide about one call, ask if need be.

    Args:
        ctx: The call whose model asks.
        call: What the model wrote.
        traits: What the tool says of itself.
        args: The validated arguments: what is approved is what runs.

    Returns:
        None when the call may be made, else what the model is told.

    Raises:
        AbortedError: A person ended the run.
        PermissionDeniedError: It was denied, and denials end the run.
    """
    while True:
        data = args if _plain(args) else as_mapping(args)
        info = _info(ctx, call.tool_name, traits, data)
        decision = await _decide(ctx, info, traits)
        if decision.effect == "allow":
            return None
        if decision.effect == "deny":
            return _deny(ctx, call, data, decision)
        bound = call_digest(info)
        decision = await _answer(ctx, call, info, traits, data, decision, bound)
        if decision.effect == "deny":
            return _deny(ctx, call, data, decision)
        data = args if _plain(args) else as_mapping(args)
        if call_digest(_info(ctx, call.tool_name, traits, data)) == bound:
            _grant(ctx, call, data, decision)
            return None


def _info(ctx: CallContext, tool_name: str, traits: ToolTraits, data: Mapping[str, Any]) -> ToolCallInfo:
    config = ctx.frame.config
    return ToolCallInfo(
        tool_name=tool_name,
        args=data,
        agent=config.name,
        path=config.path,
        depth=config.depth,
        toolset=traits.toolset,
        tool=traits.tool or tool_name,
        kind=traits.kind,
        primary=traits.primary,
        resolved=_resolved(traits, data),
    )


def _resolved(traits: ToolTraits, data: Mapping[str, Any]) -> Mapping[str, Resolved]:
    """What the arguments stand for; arguments that can't be resolved are None, which no rule allows."""
    if traits.resolve is None:
        return {}
    try:
        return traits.resolve(data)
    except Exception:  # noqa: BLE001 (a toolset that fails must not widen what is allowed)
        return dict.fromkeys(data)


async def _decide(ctx: CallContext, info: ToolCallInfo, traits: ToolTraits) -> Decision:
    runtime = ctx.runtime
    return decide(
        info,
        runtime.policy,
        metadata=traits.approval,
        toolset=traits.verdict(info) if traits.verdict is not None else None,
        function=await _ask_function(ctx, info) if runtime.policy_function is not None else None,
        calls_require_approval=traits.kind == "agent" and runtime.agent_call_needs_approval(info),
    )


async def _ask_function(ctx: CallContext, info: ToolCallInfo) -> Literal["approve", "reject", "prompt"] | None:
    """What the project's policy function says; raising, hanging or nonsense is a rejection."""
    function = ctx.runtime.policy_function
    assert function is not None
    try:
        async with asyncio.timeout(POLICY_SECONDS):
            if inspect.iscoroutinefunction(function):
                said: object = await function(info)
            else:
                said = await ctx.runtime.in_thread(function, info)
                if inspect.isawaitable(said):
                    said = await said
    except Exception as error:  # noqa: BLE001 (a policy that fails must fail closed)
        ctx.warn(f"the policy function failed on {info.tool_name}, which rejects the call: {error!r}")
        return "reject"
    if said is None or said in ("approve", "reject", "prompt"):
        return said  # pyright: ignore[reportReturnType]
    ctx.warn(f"the policy function returned {said!r} for {info.tool_name}, which rejects the call")
    return "reject"


async def _answer(
    ctx: CallContext,
    call: ToolCallPart,
    info: ToolCallInfo,
    traits: ToolTraits,
    data: Mapping[str, Any],
    decision: Decision,
    bound: str,
) -> Decision:
    """What an ask is answered with: a remembered answer, an option, the mode, a person."""
    runtime = ctx.runtime
    remembered = bound in runtime.remembered
    answered = answer(
        decision, remembered=remembered, options=runtime.allow_options, mode=runtime.config.approvals.mode, call=info
    )
    if answered is not None:
        return answered
    broker = runtime.broker()
    if broker is None:
        ctx.run.nobody_to_ask = True
        return nobody_to_ask(decision, info)
    request = ApprovalRequest(
        id=broker.next_id(),
        run_id=ctx.run_id,
        call_id=ctx.call_id,
        tool_call_id=call.tool_call_id,
        agent=info.agent,
        agent_path=info.path,
        tool_name=call.tool_name,
        args=data,
        reason=decision.reason,
        rule=decision.rule,
        description=await _safely(ctx, traits.describe, data) or "",
        diff=await _safely(ctx, traits.diff, data),
        digest=bound,
    )
    ctx.emit(
        ApprovalRequestedEvent,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args=data,
        rule=decision.rule or decision.reason,
    )
    by = "cancelled"
    effect: Literal["allow", "deny"] = "deny"
    try:
        given = await broker.ask(request)
        by = "person"
        if given.answer == "abort":
            raise AbortedError(f"a person ended the run at {call.tool_name}", agent_path=ctx.path)
        if given.answer == "session" and not decision.person_only:
            runtime.remembered.add(bound)
        effect = "deny" if given.answer == "deny" else "allow"
    finally:
        ctx.emit(
            ApprovalResolvedEvent, tool_call_id=call.tool_call_id, tool_name=call.tool_name, decision=effect, by=by
        )
    reason = f"a person denied {call.tool_name}" + (f": {given.note}" if given.note else "")
    return Decision(effect, "person", reason if effect == "deny" else "a person allowed it", rule=decision.rule)


async def _safely(ctx: CallContext, function: Any, data: Mapping[str, Any]) -> str | None:
    """A toolset's text for a question; a toolset that can't say it doesn't stop the question."""
    if function is None:
        return None
    try:
        text = await ctx.runtime.in_thread(function, data)
    except Exception as error:  # noqa: BLE001
        return f"({type(error).__name__}: {error})"
    return text if text is None else str(text)


def _deny(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> str:
    ctx.run.denials.append(_record(ctx, call, data, decision))
    said = decision.reason or f"{call.tool_name} is not allowed"
    settings = ctx.runtime.config
    if not settings.tell_denials:
        raise PermissionDeniedError(
            said, hint="Allow it with a rule, or set `return_permission_errors`.", agent_path=ctx.path
        )
    return f"{said}. Do not retry this call."


def _grant(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> None:
    ctx.run.approvals.append(_record(ctx, call, data, decision))


def _record(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> ApprovalRecord:
    return ApprovalRecord(call.tool_call_id, ctx.path, call.tool_name, dict(data), decision.reason, decision.rule)


def _plain(args: Mapping[str, Any]) -> bool:
    """Whether arguments are JSON data already, the common case."""
    return all(value is None or type(value) in (str, int, float, bool) for value in args.values())
