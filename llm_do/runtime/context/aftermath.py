"""What follows from a step of a durable run in addition to its result: kept with it, and restored by its replay.

These are the calls that the step's own code made with their usage and errors, the states of the thread and the user,
and those of the toolkits that a function's code has.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do.runtime.record.recording import toolkit_states
from llm_do.runtime.record.results import ErrorRecord
from llm_do.runtime.steps.inner_calls import is_below
from llm_do.runtime.steps.stored_results import call_record
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from llm_do.machines.machine import ToolkitState
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.steps.durable_run import DurableRun

__all__ = ["Aftermath"]


class Aftermath:
    """What follows from one step; created before it begins.

    Args:
        ctx: The call that the step belongs to.
        durable: What makes its run durable.
        toolkits: The states of toolkits that the step's code may change, if there are any.
    """

    def __init__(self, ctx: CallContext, durable: DurableRun, toolkits: dict[str, ToolkitState] | None = None) -> None:
        self._run = ctx.run
        self._durable = durable
        self._toolkits = toolkits if toolkits is not None else {}
        self._states = dict(self._toolkits)
        self._calls, self._errors = len(self._run.calls), len(self._run.errors)
        self.inner: list[str] = []

    def data(self, own: ErrorRecord | None = None) -> dict[str, Any]:
        """What followed, as JSON data; `own` is the failure of the step itself."""
        run = self._run
        calls = [record for record in run.calls[self._calls :] if is_below(record.call_id, self.inner)]
        paths = {record.path for record in calls}
        errors = [each for each in run.errors[self._errors :] if each == own or each.agent_path in paths]
        changed = {name: state for name, state in self._toolkits.items() if self._states.get(name) is not state}
        return {
            "inner": self.inner,
            "calls": [record.to_dict() for record in calls],
            "errors": [error.to_dict() for error in errors],
            "states": self._durable.changed_states(
                to_json_data(run.thread.state), to_json_data(run.user.state), always=bool(self.inner)
            ),
            "toolkits": {name: state.to_dict() for name, state in changed.items()},
        }

    def replay(self, kept: Mapping[str, Any]) -> None:
        """Restore it."""
        run, states = self._run, kept["states"]
        self._replay_calls(kept["inner"], kept["calls"])
        run.errors.extend(ErrorRecord(**error) for error in kept["errors"])
        if states is not None and self._durable.is_newer(states):
            run.thread.state = copy.deepcopy(states["thread"])
            run.user.state = copy.deepcopy(states["user"])
        self._toolkits.update(toolkit_states(kept["toolkits"]))

    def _replay_calls(self, inner: list[str], calls: Sequence[Mapping[str, Any]]) -> None:
        self._durable.log.drop_below(inner)
        for data in calls:
            record = call_record(data)
            self._run.calls.append(record)
            self._run.steps += record.steps
            self._run.budget.add(record.usage)
