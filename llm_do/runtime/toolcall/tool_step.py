"""A tool call as a step of a durable run: one that has ended isn't made again, one that was in flight isn't repeated.

What is kept is how the call ended with everything that followed from it: the states of its machines, those of the
thread and the user, its approval, and the calls that its code made.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from llm_do.runtime.context.emission import live_step
from llm_do.runtime.record.outcomes import ToolOutcome
from llm_do.runtime.record.results import ApprovalRecord, ErrorRecord, Usage, arguments_data
from llm_do.runtime.steps.inner_calls import is_below
from llm_do.runtime.steps.stored_results import call_record
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart

    from llm_do.machines.tool_gate import ToolGate
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.steps.durable_run import DurableRun, InFlight
    from llm_do.runtime.tools.traits import ToolTraits

__all__ = ["CARRIED_OUT", "UNKNOWN", "ToolStep", "tool_step"]

CALLS = ("agent", "flow", "handoff")
"""Kinds of tools that are no steps: what they call is replayed, so that calls, usage and events come about again."""

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
        self.key = f"{ctx.call_id}/r{ctx.frame.requests}/{call.tool_call_id}"
        run = ctx.run
        self._approvals, self._denials, self._errors = len(run.approvals), len(run.denials), len(run.errors)
        self._calls, self._used = len(run.calls), run.budget.used
        self.inner: list[str] = []
        self.ran = False

    async def replay(self, gates: Sequence[ToolGate], args: Mapping[str, Any]) -> ToolOutcome | None:
        """The outcome of an earlier attempt, and everything that followed from it; None if the call hasn't ended.

        Raises:
            ReplayError: A step can't be replayed.
        """
        kept = self._log.replay(self.key)
        if kept is None:
            await live_step(self._ctx)
            return None
        ctx, gating = self._ctx, self._ctx.frame.gating
        if gates:
            await gating.order.turn(self._call.tool_call_id)
        outcome = ToolOutcome.from_dict(kept["outcome"])
        if kept["ran"]:
            ctx.run.budget.count_tool_call()
            ctx.frame.usage += Usage(tool_calls=1)
        for change in outcome.changes:
            gating.states[change.toolkit] = change.state
        self._replay_records(kept)
        self._replay_states(kept)
        if outcome.succeeded and self._traits.restore is not None:
            self._traits.restore(ctx, args)
        return outcome

    def decision_about_in_flight(self) -> InFlight | None:
        """What was decided about the call if it was running when the run stopped, and can't simply be repeated."""
        if self._traits.facts.repeatable or self._log.in_flight(self.key) is None:
            return None
        return self._durable.in_flight.get(self.key, "fail")

    async def begin(self, args: Mapping[str, Any]) -> None:
        """Keep that the tool's code is about to run."""
        self.ran = True
        if self._traits.facts.repeatable:
            return
        call = self._call
        data = {
            "tool_name": call.tool_name,
            "tool_call_id": call.tool_call_id,
            "args": arguments_data(args),
            "path": self._ctx.path,
        }
        await self._log.begin(self.key, "tool", data)

    async def finish(self, outcome: ToolOutcome) -> None:
        """Keep how the call ended; nothing is awaited between its last event and this."""
        run, durable = self._ctx.run, self._durable
        state, user = to_json_data(run.thread.state), to_json_data(run.user.state)
        calls = [record for record in run.calls[self._calls :] if is_below(record.call_id, self.inner)]
        data = {
            "outcome": outcome.to_dict(),
            "ran": self.ran,
            "approvals": self._own(run.approvals[self._approvals :]),
            "denials": self._own(run.denials[self._denials :]),
            "unattended": run.unattended,
            "errors": [
                error.to_dict()
                for error in run.errors[self._errors :]
                if error == outcome.error or any(error.agent_path == record.path for record in calls)
            ],
            "inner": self.inner,
            "calls": [record.to_dict() for record in calls],
            "states": durable.changed_states(state, user),
        }
        await self._log.finish(self.key, "tool", data)

    def _own(self, records: Sequence[ApprovalRecord]) -> list[dict[str, Any]]:
        return [asdict(record) for record in records if record.call_id == self._call.tool_call_id]

    def _replay_records(self, kept: Mapping[str, Any]) -> None:
        run = self._ctx.run
        run.approvals.extend(ApprovalRecord(**data) for data in kept["approvals"])
        run.denials.extend(ApprovalRecord(**data) for data in kept["denials"])
        run.errors.extend(ErrorRecord(**data) for data in kept["errors"])
        run.unattended |= kept["unattended"]
        self._log.drop_below(kept["inner"])
        for data in kept["calls"]:
            record = call_record(data)
            run.calls.append(record)
            run.steps += record.steps
            run.budget.add(record.usage)

    def _replay_states(self, kept: Mapping[str, Any]) -> None:
        states, run = kept["states"], self._ctx.run
        if states is not None and self._durable.is_newer(states):
            run.thread.state = copy.deepcopy(states["thread"])
            run.user.state = copy.deepcopy(states["user"])


def tool_step(ctx: CallContext, call: ToolCallPart, traits: ToolTraits) -> ToolStep | None:
    """The step of a tool call; None in a run that isn't durable, and for what is no step."""
    durable = ctx.run.durable
    if durable is None or traits.facts.kind in CALLS:
        return None
    return ToolStep(ctx, durable, call, traits)
