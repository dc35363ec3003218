"""One tool call, in this order everywhere: validate, gate, hooks, approve, run, transition, hooks, record.

PydanticAI validates, refused calls end in `refuse`, the rest is `run_tool_call`. Whatever happens, the call has one
`ToolOutcome`: its result and its event are views of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_ai import RunContext, ToolDefinition, ToolDenied
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import ToolCallPart

from llm_do.concurrency.large_values import let_go
from llm_do.concurrency.run_end import RunEndSignal, reraise_if_cancelled
from llm_do.errors import AbortedError, LlmDoError, PermissionDeniedError, RunTimeoutError, ToolFailedError
from llm_do.files.refusals import ContentChangedError
from llm_do.policy.values import Decision
from llm_do.project.faults import find_fault, not_data_error, project_error
from llm_do.runtime.approval.approver import ANSWERED, TRIES, denial_text
from llm_do.runtime.approval.pending_call import BoundToFailError, PendingCall, makers_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import busy, emit, flush_record, record_tool, waiting_for_person
from llm_do.runtime.context.hooks import HookAbort, HookPoint
from llm_do.runtime.record.outcomes import ToolOutcome, ToolOutput, ToolStatus
from llm_do.runtime.record.results import ApprovalRecord, ErrorRecord, Usage
from llm_do.runtime.record.transport import ToolTimedOutError
from llm_do.runtime.steps.inner_calls import inner_calls
from llm_do.runtime.toolcall.carried_call import carried
from llm_do.runtime.toolcall.failure_texts import failure_text, intended_text
from llm_do.runtime.toolcall.gatekeeper import run_in_transaction, wait_for_gates
from llm_do.runtime.toolcall.lasting_calls import note_call
from llm_do.runtime.toolcall.new_code import notice_new_code, with_notices
from llm_do.runtime.toolcall.tool_step import CARRIED_OUT, UNKNOWN, ToolStep, step_questions, tool_step
from llm_do.runtime.tools.approval_requirement import ApprovalRequirement, required_by_error, required_by_wrappers
from llm_do.runtime.tools.current_tool import APPROVED_BASIS, CURRENT_TOOL
from llm_do.runtime.tools.tool_output import truncate_text
from llm_do.runtime.tools.traits import ToolTraits, traits_of
from llm_do.text.exception_text import exception_text
from llm_do.text.json_data import NotDataError, arguments_data

if TYPE_CHECKING:
    from llm_do.machines.tool_gate import ToolGate

__all__ = ["ENDS_RUN", "Validate", "refuse", "run_tool_call"]

Validate: TypeAlias = "Callable[[dict[str, Any]], Awaitable[dict[str, Any] | str]]"
"""Validates arguments as those of the model are: returns what the tool gets, or what is wrong with them."""

ENDS_RUN = (RunEndSignal, AbortedError, PermissionDeniedError, ToolFailedError, RunTimeoutError)
"""What passes through a tool call and ends the run, however deep it was raised."""

_PLAIN = ToolTraits()
_LARGE = 1_000_000
"""Bytes of a result that take more than a moment to free."""


def refuse(ctx: CallContext, call: ToolCallPart, reason: str) -> ToolFailed:
    """Record that a call was refused before it was decided about; the caller raises what is returned."""
    text = truncate_text(reason, ctx.runtime.config.settings.max_result_bytes)
    record_tool(ctx, ToolOutcome(call.tool_name, call.tool_call_id, "refused", ToolOutput.of_text(text)))
    ctx.frame.identical.leave(call.tool_call_id)
    ctx.frame.gating.order.leave(call.tool_call_id, call.tool_name, succeeded=False)
    return ToolFailed(text)


async def run_tool_call(
    ctx: CallContext,
    call: ToolCallPart,
    tool_def: ToolDefinition,
    args: dict[str, Any],
    handler: Callable[[dict[str, Any]], Awaitable[Any]],
    run: RunContext[Any],
    validate: Validate,
) -> Any:
    """Take one validated call through the remaining steps; what it returns or raises is the result that PydanticAI
    gives to the model."""
    traits = traits_of(tool_def.metadata) or _PLAIN
    gates = ctx.frame.gating.gates(call.tool_name, traits.gate)
    step = tool_step(ctx, call, traits)
    one = _ToolCall(ctx, call, traits, gates, args, handler, validate, tool_def.parameters_json_schema, step)
    outcome = one.ended("cancelled", "the run ended first")
    replayed: ToolOutcome | None = None
    try:
        if step is not None:
            replayed = await step.replay(gates, args)
        outcome = replayed or await one.carry_out(run, tool_def)
    except HookAbort as abort:
        outcome = one.ended("failed", find_fault(abort.error).after("a hook raised"), abort.error)
        raise
    except LlmDoError as error:
        outcome = one.ended("failed", error.message, error)
        raise
    finally:
        record_tool(ctx, outcome)
        ctx.frame.identical.leave(call.tool_call_id)
        ctx.frame.approvals.approved.discard(call.tool_call_id)
        ctx.frame.approvals.by_person.discard(call.tool_call_id)
        if gates:
            ctx.frame.gating.order.leave(call.tool_call_id, call.tool_name, succeeded=outcome.succeeded)
    if step is not None and replayed is None:
        step.finish(outcome)
    return _for_model(outcome)


def _for_model(outcome: ToolOutcome) -> Any:
    """An outcome as PydanticAI takes it: a value, a denial, or an exception that means a failed result."""
    if outcome.status == "success":
        return outcome.output.for_model
    if outcome.status == "denied":
        return ToolDenied(outcome.output.for_model)
    raise ToolFailed(outcome.output.for_model)


@dataclass(slots=True, eq=False)
class _ToolCall:
    """One validated call on its way through the steps; exceptions are only for what ends the run."""

    ctx: CallContext
    part: ToolCallPart
    traits: ToolTraits
    gates: Sequence[ToolGate]
    args: dict[str, Any]
    handler: Callable[[dict[str, Any]], Awaitable[Any]]
    validate: Validate
    schema: Mapping[str, Any]
    step: ToolStep | None = None
    decision: Decision | None = None
    requirement: ApprovalRequirement | None = None
    changed: bool = False

    async def carry_out(self, run: RunContext[Any], tool_def: ToolDefinition) -> ToolOutcome:
        """Gate, hooks, approve, run, transition, hooks."""
        ctx, name, hooks = self.ctx, self.part.tool_name, self.ctx.frame.hooks
        agent = ctx.frame.config.agent
        decided = await self.step.decision_about_in_flight() if self.step is not None else None
        if decided not in (None, "repeat"):
            text, status = (CARRIED_OUT, "success") if decided == "done" else (UNKNOWN, "failed")
            return self.ended(status, text)
        if self.gates and (reason := await wait_for_gates(ctx.frame.gating, self.part, self.gates)) is not None:
            return self.ended("refused", reason)
        checked: Mapping[str, Any] = {}
        if hooks:
            checked = _arguments(self.args)
            with busy(ctx):
                await hooks.call(HookPoint.PRE_TOOL_CALL, agent=agent, tool_name=name, arguments=self.args)
            if (fault := await self._validate_changes(checked)) is not None:
                return self.ended("refused", fault)
            checked = _arguments(self.args)
        validator = ctx.frame.approvals.required.pop(self.part.tool_call_id, None)
        if validator is not None:
            requirement = required_by_error(validator.error)
            self.handler = validator.before(self.handler)
        else:
            requirement = required_by_wrappers(self.traits, run, tool_def, self.args)
        self.requirement = requirement
        denied = await self._approve(requirement)
        if denied is not None:
            return denied
        # A hook may have kept the arguments, and changed them while the call waited for its approval.
        if hooks and (fault := await self._validate_changes(checked)) is not None:
            return self.ended("refused", fault)
        await self._record_intent()
        await note_call(ctx, self.part, self.traits, self.args)
        ctx.run.budget.count_tool_call()
        ctx.frame.usage += Usage(tool_calls=1)
        outcome, value = await self._run_approved()
        if hooks and outcome.status != "denied":
            with busy(ctx):
                await hooks.call(HookPoint.POST_TOOL_CALL, agent=agent, tool_name=name, result=value)
        if (outcome.output.size or 0) > _LARGE:
            held = [value]
            del value
            let_go(held)
        return outcome

    async def _validate_changes(self, checked: Mapping[str, Any]) -> str | None:
        """Validate arguments that aren't those checked before; returns what is wrong with them."""
        now = _arguments(self.args)
        if now == checked:
            return None
        self.changed = True
        found = await self.validate(self.args)
        if isinstance(found, str):
            return f"a hook changed the arguments: {found}"
        self.args = found
        gating, name = self.ctx.frame.gating, self.part.tool_name
        checks = (gate.check(gating.state(gate), name, dict(now)) for gate in self.gates)
        return next((reason for reason in checks if reason is not None), None)

    async def _record_intent(self) -> None:
        """Wait until the call, and the response that asked for it, are on disk, unless it can be repeated.

        Whatever happens then, the record shows that the tool may have run.
        """
        if self.step is not None:
            await self.step.begin(self.args)
            return
        if self.traits.facts.repeatable:
            return
        try:
            await flush_record(self.ctx, required=True)
        except RunEndSignal as end:
            record_tool(self.ctx, self.ended("failed", f"not run: {exception_text(end.error)}", end.error))
            raise

    def ended(self, status: ToolStatus, text: str, error: BaseException | None = None) -> ToolOutcome:
        """The outcome of a call without a result."""
        output = ToolOutput.of_text(truncate_text(text, self.ctx.runtime.config.settings.max_result_bytes))
        record = ErrorRecord.of(error, self.ctx.path, root=self.ctx.run.root) if error is not None else None
        return self._outcome(status, output, error=record)

    def _outcome(self, status: ToolStatus, output: ToolOutput, **more: Any) -> ToolOutcome:
        call = self.part
        args = _arguments(self.args) if self.changed else None
        return ToolOutcome(call.tool_name, call.tool_call_id, status, output, decision=self.decision, args=args, **more)

    async def _approve(self, requirement: ApprovalRequirement | None) -> ToolOutcome | None:
        """Have the call decided about; returns the outcome of one that is denied."""
        ctx, call = self.ctx, self.part
        try:
            with busy(ctx):  # what is shown of a call may take long to make; waiting for the answer doesn't count
                decision, info = await ctx.runtime.approver.approve(self._pending(requirement))
        except BoundToFailError as error:
            return self.ended("failed", failure_text(error), error)
        finally:
            ctx.frame.identical.leave(call.tool_call_id)
        self.decision = decision
        record = ApprovalRecord(
            call.tool_call_id,
            info.path,
            call.tool_name,
            dict(info.args),
            decision.reason,
            decision.rule,
            decision.needed,
        )
        if decision.effect != "allow":
            ctx.run.denials.append(record)
            ctx.run.unattended |= decision.source == "unattended"
            if not ctx.runtime.config.denials_go_to_model:
                raise self._denial_error(decision)
            return self.ended("denied", denial_text(decision))
        if decision.source in ANSWERED:
            ctx.run.approvals.append(record)
        if decision.approves:
            ctx.frame.approvals.approved.add(call.tool_call_id)
        if decision.source == "person":
            ctx.frame.approvals.by_person.add(call.tool_call_id)
        return None

    def _pending(self, requirement: ApprovalRequirement | None) -> PendingCall:
        ctx, config = self.ctx, self.ctx.frame.config
        return PendingCall(
            tool_name=self.part.tool_name,
            traits=self.traits,
            read=partial(_arguments, self.args),
            agent=config.name,
            path=config.path,
            depth=config.depth,
            makers=makers_of(ctx.project, ctx.runtime.registry, config.path),
            requirement=requirement,
            run_id=ctx.run_id,
            call_id=ctx.call_id,
            tool_call_id=self.part.tool_call_id,
            identical=ctx.frame.identical,
            emit=partial(emit, ctx),
            warn=ctx.warn,
            waiting=partial(waiting_for_person, ctx, self.part.tool_call_id),
            schema=self.schema,
            questions=step_questions(ctx, self.part, self.traits),
        )

    def _denial_error(self, decision: Decision) -> PermissionDeniedError:
        """What ends a run under `return_permission_errors: false`."""
        hint = "Allow it with a rule, or set `return_permission_errors`."
        error = PermissionDeniedError(decision.reason, hint=hint, agent_path=self.ctx.path)
        error.status = "denied" if self.ctx.run.unattended else "failed"
        return error

    async def _run_approved(self) -> tuple[ToolOutcome, Any]:
        """Run the tool; once more if it requires an approval that the call doesn't have, and gets it.

        A call that would change another content than was shown is asked about again.
        """
        for _ in range(TRIES):
            try:
                return await self._run()
            except ApprovalRequired as error:
                denied = await self._approve(required_by_error(error))
            except ContentChangedError:
                denied = await self._approve(self.requirement)
            if denied is not None:
                return denied, None
        return self.ended("failed", "what it would change was changed each time, just before it ran"), None

    async def _run(self) -> tuple[ToolOutcome, Any]:
        """Run the tool itself with its timeout, and its transition; returns the outcome and what hooks are shown.

        It raises what ends the run, and the `ApprovalRequired` of a call that hasn't been approved.
        """
        ctx, traits = self.ctx, self.traits
        limit = traits.timeout if traits.timeout is not None else ctx.frame.config.tool_timeout
        given_up = threading.Event()
        token = CURRENT_TOOL.set(given_up)
        basis = APPROVED_BASIS.set(self.decision.basis if self.decision is not None else None)
        timer = asyncio.timeout(limit)
        try:
            async with timer, notice_new_code(ctx, self.part, traits.facts.kind) as notices:
                handler = carried(ctx, self.part, traits.facts.kind, self.handler)
                working = busy(ctx) if self.step is not None else nullcontext()
                with working, inner_calls(self.step.key if self.step is not None else "") as calls:
                    if self.step is not None:
                        self.step.aftermath.inner = calls
                    value, output, changes = await run_in_transaction(
                        ctx, self.part, self.gates, self.args, handler, traits.succeeded
                    )
            output = with_notices(output, notices)
            return self._outcome("success", output, changes=changes), value
        except ENDS_RUN:
            raise
        except BaseException as error:  # libraries in other languages raise more than exceptions
            reraise_if_cancelled(error)
            if isinstance(error, ApprovalRequired) and self.part.tool_call_id not in ctx.frame.approvals.approved:
                raise
            if isinstance(error, ContentChangedError) and self.decision is not None and self.decision.basis is not None:
                raise
            late = timer.expired() or isinstance(error, ToolTimedOutError)
            timed_out = isinstance(error, TimeoutError) and late
            outcome = (
                self.ended("timed_out", f"timed out after {limit or 0:g} s", error)
                if timed_out
                else self._failed(error)
            )
            return outcome, outcome.output.for_model
        finally:
            given_up.set()
            CURRENT_TOOL.reset(token)
            APPROVED_BASIS.reset(basis)

    def _failed(self, error: BaseException) -> ToolOutcome:
        """The outcome of a call whose tool raised; under `on_tool_error: raise` an unintended failure ends the run."""
        intended = intended_text(error)
        if intended is not None:
            return self.ended("failed", intended, error)
        ctx, name = self.ctx, self.part.tool_name
        text = None
        if isinstance(error, NotDataError):
            error = not_data_error(name, error, self.traits.function, ctx.run.root, ctx.path)
            text = error.message
        outcome = self.ended("failed", text or failure_text(error), error)
        own = not isinstance(error, LlmDoError | CallDeferred | ApprovalRequired | asyncio.CancelledError)
        raises = ctx.runtime.config.settings.on_tool_error == "raise"
        if own and raises:
            raise project_error(ToolFailedError, f"{name} raised", error, ctx.run.root, agent_path=ctx.path) from error
        record = ctx.run.record_error(error, ctx.path, name if own else None)
        if raises:
            raise ToolFailedError(
                outcome.output.for_model,
                agent_path=ctx.path,
                hint="correct the tool, or set `runtime.on_tool_error` to `return`, which tells the model instead",
            ) from error
        return replace(outcome, error=record)


def _arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy of validated arguments as JSON data; most are JSON data already."""
    plain = all(value is None or type(value) in (str, int, float, bool) for value in args.values())
    return dict(args) if plain else arguments_data(args)
