"""May this call be made: collects what policy needs, lets it decide, and has what is asked answered.

The decision itself is `llm_do.policy.decision`, a pure function; this module does its reading, asking and bookkeeping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import AbortedError, PermissionDeniedError, StoreError, error_text
from llm_do.policy.decision import answer_automatically, decide, deny_without_approver
from llm_do.policy.digest import call_digest
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.proposals import quote_argument
from llm_do.policy.rules import Rule
from llm_do.policy.values import CALLS, Decision, Effect, ToolCallInfo
from llm_do.runtime.approval import saved_approvals
from llm_do.runtime.approval.broker import ApprovalDecision, ApprovalRequest, Question
from llm_do.runtime.approval.toolset_opinion import (
    describe_safely,
    resolve_arguments,
    restrictive_targets,
    stricter_decision,
    toolset_decision,
)
from llm_do.runtime.record.emission import emit
from llm_do.runtime.record.events import ApprovalRequestedEvent, ApprovalResolvedEvent
from llm_do.runtime.record.results import ApprovalRecord, arguments_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.project.project import RuntimeSettings
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.runtime import Runtime
    from llm_do.runtime.tools.approval_requirement import ApprovalRequirement
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["approve", "call_info", "decide_call", "known_answer"]

ANSWERED = frozenset({"remembered", "option", "mode", "person"})
"""What a granted call was asked about, told by who answered."""

TRIES = 3
"""How often a call is decided about whose arguments change meanwhile, before it is denied."""

POLICY_SECONDS = 1.0
"""How long a project's policy function may take; longer is a rejection."""


async def approve(
    ctx: CallContext,
    call: ToolCallPart,
    traits: ToolTraits,
    args: dict[str, Any],
    wants: ApprovalRequirement | None = None,
) -> Decision:
    """Decide about one call, ask if need be."""
    for _ in range(TRIES):
        # A copy: what decides and asks is somebody else's code, and must not change what runs.
        data = dict(args) if _plain(args) else arguments_data(args)
        info = _info(ctx, call.tool_name, traits, data)
        waits = ctx.runtime.policy_function is not None or wants is not None
        bound = call_digest(info) if waits else ""
        decision = await decide_call(ctx.runtime, info, traits, ctx.warn, wants(args) if wants is not None else None)
        if decision.effect == "ask":
            bound = bound or call_digest(info)
            waits = True
            decision = await _answer(ctx, call, info, traits, data, decision, bound)
        if decision.effect == "deny":
            return _deny(ctx, call, data, decision)
        if not waits:
            return decision
        data = args if _plain(args) else arguments_data(args)
        again = _info(ctx, call.tool_name, traits, data)
        if call_digest(again) == bound and again.restrictive == info.restrictive:
            if decision.source in ANSWERED:
                _grant(ctx, call, data, decision)
            return decision
    changing = f"{call.tool_name} is denied: its arguments changed each time it was decided about"
    return _deny(ctx, call, arguments_data(args), Decision("deny", changing, source="blocked"))


def _info(ctx: CallContext, tool_name: str, traits: ToolTraits, data: Mapping[str, Any]) -> ToolCallInfo:
    config = ctx.frame.config
    info = call_info(tool_name, traits, data, agent=config.name, path=config.path, depth=config.depth)
    makers = _makers(ctx)
    return replace(info, makers=makers) if makers else info


def _makers(ctx: CallContext) -> tuple[str, ...]:
    """Who made the agent that calls, and who made that one: all along its call path up to one that people wrote."""
    project, registry = ctx.project, ctx.runtime.registry
    if project.generated_agents_dir is None:
        return ()
    names = ctx.path.split("/")
    makers: list[str] = []
    while len(names) > 1:
        spec = registry.agent(names.pop())
        if spec is None or not project.is_made(spec):
            break
        makers.append(names[-1])
    return tuple(makers)


def call_info(
    tool_name: str, traits: ToolTraits, data: Mapping[str, Any], *, agent: str, path: str, depth: int
) -> ToolCallInfo:
    """A call as rules see it."""
    return ToolCallInfo(
        tool_name=tool_name,
        args=data,
        agent=agent,
        path=path,
        depth=depth,
        toolset=traits.toolset,
        tool=traits.tool or tool_name,
        kind=traits.facts.kind,
        primary=traits.facts.primary,
        resolved=resolve_arguments(traits, data),
        restrictive=restrictive_targets(traits, data),
    )


async def decide_call(
    runtime: Runtime,
    info: ToolCallInfo,
    traits: ToolTraits,
    warn: Callable[[str], None],
    wanted: Decision | None = None,
) -> Decision:
    """Decide about a call by everything that has a say in it."""
    return decide(
        info,
        runtime.policy,
        metadata=traits.approval,
        toolset=stricter_decision(toolset_decision(traits, info), wanted),
        function=await _ask_function(runtime, info, warn) if runtime.policy_function is not None else None,
        calls_require_approval=traits.facts.kind in CALLS and _agent_call_asks(runtime.config.settings, info),
        harmless=traits.facts.reason,
    )


def _agent_call_asks(settings: RuntimeSettings, info: ToolCallInfo) -> bool:
    """Whether the project asks about this call of an agent or flow, or about handing over to one."""
    own = settings.agent_approval_overrides.get(info.tool)
    calls = settings.agent_calls_require_approval
    files = settings.agent_attachments_require_approval
    if own is not None:
        calls = calls if own.calls_require_approval is None else own.calls_require_approval
        files = files if own.attachments_require_approval is None else own.attachments_require_approval
    return calls or (files and bool(info.args.get("attachments")))


_EFFECTS: Mapping[str, Effect] = {"approve": "allow", "reject": "deny", "prompt": "ask"}
"""What a policy function may return."""


async def _ask_function(runtime: Runtime, info: ToolCallInfo, warn: Callable[[str], None]) -> Effect | None:
    """What the project's policy function decides; raising, hanging or nonsense is a rejection."""
    function = runtime.policy_function
    assert function is not None
    try:
        async with asyncio.timeout(POLICY_SECONDS):
            said: object = await call_function(function, info)
    except BaseException as error:  # noqa: BLE001 (a policy that fails must fail closed)
        reraise_if_cancelled(error)
        warn(f"the policy function failed on {info.tool_name}, which rejects the call: {error_text(error)}")
        return "deny"
    if said is None:
        return None
    if isinstance(said, str) and said in _EFFECTS:
        return _EFFECTS[said]
    warn(f"the policy function returned {said!r} for {info.tool_name}, which rejects the call")
    return "deny"


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
    answered = known_answer(runtime, info, decision, bound)
    if answered is not None:
        return answered
    broker = runtime.shared.broker()
    if broker is None:
        ctx.run.nobody_to_ask = True
        return deny_without_approver(decision, info)
    question = Question(
        key=(ctx.run_id, info.path, bound),
        known=lambda: known_answer(runtime, info, decision, bound),
        request=lambda: _request(ctx, broker.next_id(), call, info, traits, data, decision, bound),
        keep=lambda given: None if decision.person_only else _remember(ctx, info, bound, given),
    )
    emit(
        ctx,
        ApprovalRequestedEvent,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args=data,
        rule=decision.rule,
        reason=decision.reason,
    )
    by: str = "cancelled"
    effect: Literal["allow", "deny"] = "deny"
    try:
        given = await broker.ask(question)
        if isinstance(given, Decision):
            by, effect = given.source, "allow" if given.effect == "allow" else "deny"
            return given
        by = "person"
        if given.answer == "abort":
            raise AbortedError(f"a person ended the run at {call.tool_name}", agent_path=ctx.path)
        effect = "deny" if given.answer == "deny" else "allow"
    finally:
        emit(
            ctx, ApprovalResolvedEvent, tool_call_id=call.tool_call_id, tool_name=call.tool_name, decision=effect, by=by
        )
    reason = f"a person denied {call.tool_name}" + (f": {given.note}" if given.note else "")
    return Decision(effect, reason if effect == "deny" else "a person allowed it", source="person", rule=decision.rule)


async def _request(
    ctx: CallContext,
    id: str,
    call: ToolCallPart,
    info: ToolCallInfo,
    traits: ToolTraits,
    data: Mapping[str, Any],
    decision: Decision,
    bound: str,
) -> ApprovalRequest:
    """The question that a person is asked, with what the tool says of the call."""
    return ApprovalRequest(
        id=id,
        run_id=ctx.run_id,
        call_id=ctx.call_id,
        tool_call_id=call.tool_call_id,
        agent=info.agent,
        agent_path=info.path,
        tool_name=call.tool_name,
        args=data,
        reason=decision.reason,
        rule=decision.rule,
        description=await describe_safely(traits.describe, data) or "",
        diff=await describe_safely(traits.diff, data),
        digest=bound,
        call=info,
        person_only=decision.person_only,
    )


def known_answer(runtime: Runtime, info: ToolCallInfo, decision: Decision, bound: str) -> Decision | None:
    """What answers a question without a person: what is remembered, an option, the mode; None when nothing does."""
    answers = runtime.answers
    return answer_automatically(
        decision,
        remembered=bound in runtime.remembered or bound in answers.digests,
        options=runtime.allow_options,
        mode=runtime.config.approvals.mode,
        call=info,
        rules=(*runtime.remembered_rules, *answers.rules),
        place=answers.digests.get(bound),
    )


def _remember(ctx: CallContext, info: ToolCallInfo, bound: str, given: ApprovalDecision) -> None:
    """Keep an answer for the session, or for good, if that is the answer; what can't be kept still holds here."""
    if given.answer not in ("session", "always"):
        return
    runtime = ctx.runtime
    pattern = None
    if given.pattern is not None:
        try:
            pattern = _granted(given.pattern, info)
        except PatternError as error:
            ctx.warn(f"the rule {given.pattern!r} can't be read, and is not kept: {error.message}")
            return
        if not matches(pattern, info):
            ctx.warn(f"the rule {given.pattern!r} doesn't allow the call it was given for, and is not kept")
            return
    if pattern is None:
        runtime.remembered.add(bound)
    else:
        place = "this session" if given.answer == "session" else saved_approvals.FILE
        runtime.remembered_rules.append(Rule("allow", pattern, pattern.text, place=place))
    if given.answer != "always":
        return
    try:
        if pattern is None:
            saved_approvals.add_call(runtime.project.root, info)
        else:
            saved_approvals.add_rule(runtime.project.root, pattern.text)
    except StoreError as error:
        ctx.warn(f"the answer holds for this session only: {error.message}")


def _granted(text: str, info: ToolCallInfo) -> Pattern:
    """The rule that an answer gives: one that names no agent speaks of the agent that asked."""
    pattern = parse_pattern(text)
    if pattern.agent is None and pattern.agent_path is None:
        return parse_pattern(f"{quote_argument(info.path)}:{text}")
    return pattern


def _deny(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> Decision:
    """Note a denial; the same with what the model is told."""
    ctx.run.denials.append(_record(ctx, call, data, decision))
    said = decision.reason or f"{call.tool_name} is not allowed"
    settings = ctx.runtime.config
    if not settings.tell_denials:
        denied = PermissionDeniedError(
            said, hint="Allow it with a rule, or set `return_permission_errors`.", agent_path=ctx.path
        )
        denied.status = "denied" if ctx.run.nobody_to_ask else "failed"
        raise denied
    return replace(decision, reason=f"{said}. Do not retry this call.")


def _grant(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> None:
    ctx.run.approvals.append(_record(ctx, call, data, decision))


def _record(ctx: CallContext, call: ToolCallPart, data: Mapping[str, Any], decision: Decision) -> ApprovalRecord:
    return ApprovalRecord(call.tool_call_id, ctx.path, call.tool_name, dict(data), decision.reason, decision.rule)


def _plain(args: Mapping[str, Any]) -> bool:
    """Whether arguments are JSON data already, the common case."""
    return all(value is None or type(value) in (str, int, float, bool) for value in args.values())
