"""A tool call as a step of a durable run: one that has ended isn't made again, one that was in flight isn't repeated.

What is kept is how the call ended with everything that followed from it: the states of its machines, those of the
thread and the user, its approval, and the calls that its code made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_do.runtime.context.aftermath import Aftermath
from llm_do.runtime.context.emission import ending_run, live_step, response_key, tool_key
from llm_do.runtime.record.outcomes import ToolOutcome
from llm_do.runtime.record.results import ApprovalRecord, Usage
from llm_do.runtime.record.store.stored_questions import call_text
from llm_do.runtime.steps.run_questions import StepQuestions
from llm_do.runtime.toolcall.lasting_calls import note_call
from llm_do.text.json_data import arguments_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.steps.durable_run import DurableRun, InFlight
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["CARRIED_OUT", "UNKNOWN", "ToolStep", "step_questions", "tool_step"]

CALLS = ("agent", "flow", "handoff")
"""Kinds of tools that are no steps: what they call is replayed, which produces calls, usage and events again."""

UNKNOWN = (
    "the run was stopped while this call was running: whether it had an effect isn't known, and it was not repeated"
)
"""The result that a model sees of such a call."""

CARRIED_OUT = "the run was stopped while this call was running; a person has made sure that it was carried out"
"""The result that a model sees of such a call, if a person says so."""


class ToolStep:
    """The step of one tool call.

    Args:
        ctx: The call whose model asks for it.
        durable: What makes the run durable.
        call: The tool call.
        traits: What is known of the tool.
    """

    def __init__(self, ctx: CallContext, durable: DurableRun, call: ToolCallPart, traits: ToolTraits) -> None:
        self._ctx = ctx
        self._durable = durable
        self._log = durable.log
        self._call = call
        self._traits = traits
        self.key = tool_key(ctx, call.tool_call_id)
        run = ctx.run
        self._approvals, self._denials = len(run.approvals), len(run.denials)
        self.aftermath = Aftermath(ctx, durable)
        self.ran = False

    def _describe(self, args: Mapping[str, Any]) -> str:
        text = call_text({"tool_name": self._call.tool_name, "args": arguments_data(args)})
        return f"the call {text} of {self._ctx.path}"

    async def replay(self, gates: Sequence[ToolGate], args: Mapping[str, Any]) -> ToolOutcome | None:
        """The outcome of an earlier attempt, and everything that followed from it; None if the call hasn't ended.

        Raises:
            RunEndSignal: A step can't be replayed.
        """
        with ending_run(self._ctx):
            kept = self._log.replay(self.key)
            if kept is None:
                await live_step(self._ctx, self.key, partial(self._describe, args))
                return None
        ctx, gating = self._ctx, self._ctx.frame.gating
        if gates:
            await gating.order.turn(self._call.tool_call_id)
        outcome = ToolOutcome.from_dict(kept["outcome"])
        if kept["ran"]:
            await note_call(ctx, self._call, self._traits, args)
            ctx.run.budget.count_tool_call()
            ctx.frame.usage += Usage(tool_calls=1)
        for change in outcome.changes:
            gating.states[change.toolkit] = change.state
        run = ctx.run
        run.approvals.extend(ApprovalRecord(**data) for data in kept["approvals"])
        run.denials.extend(ApprovalRecord(**data) for data in kept["denials"])
        run.unattended |= kept["unattended"]
        self.aftermath.replay(kept)
        if outcome.succeeded and self._traits.restore is not None:
            self._traits.restore(ctx, args)
        return outcome

    async def decision_about_in_flight(self) -> InFlight | None:
        """What was decided about the call if it was running when the run stopped, and can't simply be repeated.

        It waits until a person has decided.
        """
        if self._traits.may_run_again or self._log.in_flight(self.key) is None:
            return None
        decided = await self._durable.decide_in_flight(self.key)
        if decided != "repeat":
            for request in self._log.drop_inner(self.key):
                self._ctx.run.budget.add(Usage.from_dict(request["outcome"]["usage"]))
        return decided

    async def begin(self, args: Mapping[str, Any]) -> None:
        """Keep that the tool's code is about to run."""
        self.ran = True
        if self._traits.may_run_again:
            return
        call = self._call
        data = {
            "tool_name": call.tool_name,
            "tool_call_id": call.tool_call_id,
            "args": arguments_data(args),
            "path": self._ctx.path,
        }
        with ending_run(self._ctx):
            await self._log.begin(self.key, "tool", data)

    def finish(self, outcome: ToolOutcome) -> None:
        """Keep how the call ended; nothing is awaited between its last event and this."""
        run = self._ctx.run
        data = {
            "path": self._ctx.path,
            "outcome": outcome.to_dict(),
            "ran": self.ran,
            "approvals": self._own(run.approvals[self._approvals :]),
            "denials": self._own(run.denials[self._denials :]),
            "unattended": run.unattended,
            **self.aftermath.data(outcome.error),
        }
        self._log.end(self.key, "tool", data)

    def _own(self, records: Sequence[ApprovalRecord]) -> list[dict[str, Any]]:
        return [asdict(record) for record in records if record.call_id == self._call.tool_call_id]


def step_questions(ctx: CallContext, call: ToolCallPart, traits: ToolTraits) -> StepQuestions | None:
    """The questions about a tool call; None in a run that isn't durable."""
    durable = ctx.run.durable
    if durable is None or not durable.keeps_questions:
        return None
    key = tool_key(ctx, call.tool_call_id)
    is_step = traits.facts.kind not in CALLS

    def what() -> str:
        return f"the question about {call.tool_name} of {ctx.path}"

    return StepQuestions(durable.questions, key, response_key(ctx), is_step, partial(live_step, ctx, key, what))


def tool_step(ctx: CallContext, call: ToolCallPart, traits: ToolTraits) -> ToolStep | None:
    """The step of a tool call; None in a run that isn't durable, and for what is no step."""
    durable = ctx.run.durable
    if durable is None or traits.facts.kind in CALLS:
        return None
    return ToolStep(ctx, durable, call, traits)
