"""One run of one flow, as the runtime sees it: what goes in, and what comes out besides the output.

How flows run is `llm_do.flows`' business, which is imported when the first one does.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage

    from llm_do.project.flow_spec import FlowSpec
    from llm_do.runtime.context.call_context import CallContext

__all__ = ["FlowTurn", "run_flow"]


@dataclass(slots=True)
class FlowTurn:
    """What one run of a flow is given, and leaves behind.

    Args:
        ctx: The flow's own context.
        history: The conversation so far; it goes to the agent that speaks first.
        messages: The histories of its steps, one after the other; put here however the flow ends.
        active: The agent in control: of the last turn when it begins, of this one when it ends.
    """

    ctx: CallContext
    history: Sequence[ModelMessage] = ()
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    active: str | None = None


async def run_flow(flow: FlowSpec, given: BaseModel, turn: FlowTurn) -> Any:
    """Run a flow in its context."""
    return await importlib.import_module("llm_do.flows.modes").run(flow, given, turn)
