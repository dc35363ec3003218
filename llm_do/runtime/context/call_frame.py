"""The state of one call: what is fixed (`CallConfig`) and what changes (`CallFrame`).

How a call is opened and closed is `llm_do.runtime.call.call_scope`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.turnstile import Turnstile
from llm_do.models.sendable_history import SendableHistory
from llm_do.runtime.approval.identical_calls import IdenticalCalls
from llm_do.runtime.context.budget import LoopGuard, Reservation
from llm_do.runtime.context.call_ids import CallIds
from llm_do.runtime.context.hooks import Hooks
from llm_do.runtime.context.null_model import NULL_MODEL
from llm_do.runtime.record.results import Usage
from llm_do.runtime.tools.approval_requirement import CallApprovals
from llm_do.runtime.tools.call_gates import CallGates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from llm_do.machines.machine import ToolkitState
    from llm_do.models.history_window import HistoryWindow
    from llm_do.models.message_copies import MessageCopies
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.runtime.context.history_compaction import Compaction
    from llm_do.runtime.record.exchanges import Purpose
    from llm_do.runtime.record.sent_request import RequestReader
    from llm_do.runtime.tools.handoffs import Handoff

__all__ = ["CallConfig", "CallFrame", "OpenToolCall", "Turn"]


@dataclass(slots=True)
class OpenToolCall:
    """A tool call whose result isn't recorded yet, and the seconds it has waited for a person."""

    tool_name: str
    started: float
    waited: float = 0.0


@dataclass(slots=True, eq=False)
class Turn:
    """One turn of a conversation: what a call continues, and what it leaves behind however it ends.

    Args:
        history: The conversation so far.
        active: The agent in control: of the last turn when this one begins, of this one when it ends.
        messages: The conversation when the turn has ended; of a flow the histories of its steps, one after the other.
        toolkits: The states of the conversation's toolkits, before the turn and, when it has ended, after it.
    """

    history: Sequence[ModelMessage] = ()
    active: str | None = None
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    toolkits: dict[str, ToolkitState] = field(default_factory=dict[str, "ToolkitState"])


@frozen
class CallConfig:
    """What is fixed for one call.

    Args:
        name: Name of what is called.
        path: Call path; empty for the frame around an entry that is a call of its own at depth 1.
        depth: 0 for the entry, 1 for what it calls.
        call_id: The call's id, derived from its caller's.
        parent_call_id: The caller's id.
        model: The model it asks; a `NullModel` for entries and functions.
        active_toolsets: Names of the toolsets its model may use.
        agent: The agent that runs; None for functions and entries.
        max_steps: Model requests it may make.
        tool_timeout: Seconds a tool call may take.
        label: What the caller's code tells it apart by, for people.
    """

    name: str
    path: str
    depth: int
    call_id: str
    parent_call_id: str | None
    model: Model = NULL_MODEL
    active_toolsets: tuple[str, ...] = ()
    agent: AgentSpec | None = None
    max_steps: int = 10
    tool_timeout: float | None = None
    label: str = ""

    @property
    def is_root(self) -> bool:
        """Whether the call only surrounds the run's entry, which is itself a call at depth 1."""
        return not self.path


@dataclass(slots=True, eq=False)
class CallFrame:
    """One call's own state: nothing of it is inherited from the caller.

    Args:
        config: What is fixed.
        input: The validated input.
        turn: The turn of its conversation.
        prompt: The prompt, as text or parts.
        messages: The history so far.
        live: The history while the agent runs, where its steps are recorded.
        compaction: Shortens what its model is sent.
        approvals: The approvals that its tools required, and the calls that were approved.
        call_ids: The ids of its conversation's tool calls.
        sendable: The history as it is sent.
        window: What PydanticAI sees of a long history; None before it is long.
        lifecycle: PydanticAI's task around the agent's run.
        excess: The call that stands for those of a response that aren't run, and the reason.
        agents: Limits the agents that it has running, from the first one on.
        identical: The tool calls of the current response, those that are the same among them.
        readers: Read its requests for the run's record, by who makes them.
        deps: The dependencies that its agent was given, in a tuple; None for none of its own.
        replaced: In a durable run, the messages that each hook returned last, as JSON data.
        copies: The copies that each hook gets of the messages before a request, by its number.
    """

    config: CallConfig
    input: BaseModel
    turn: Turn = field(default_factory=Turn)
    prompt: Any = None
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    requests: int = 0
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    hooks: Hooks = field(default_factory=Hooks)
    loops: LoopGuard = field(default_factory=lambda: LoopGuard(3))
    gating: CallGates = field(default_factory=CallGates)
    open_calls: dict[str, OpenToolCall] = field(default_factory=dict[str, OpenToolCall])
    held: Reservation | None = None
    children: int = 0
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = ""
    handoff: Handoff | None = None
    live: list[ModelMessage] | None = None
    compaction: Compaction | None = None
    approvals: CallApprovals = field(default_factory=CallApprovals)
    call_ids: CallIds = field(default_factory=CallIds)
    sendable: SendableHistory = field(default_factory=SendableHistory)
    window: HistoryWindow | None = None
    lifecycle: asyncio.Task[Any] | None = None
    excess: tuple[str, str] | None = None
    agents: Turnstile | None = None
    identical: IdenticalCalls = field(default_factory=IdenticalCalls)
    readers: dict[Purpose, RequestReader] = field(default_factory=dict["Purpose", "RequestReader"])
    deps: tuple[object] | None = None
    replaced: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    copies: dict[int, MessageCopies] = field(default_factory=dict[int, "MessageCopies"])

    def begin_turn(self, history: Sequence[ModelMessage], active: str | None) -> Turn:
        """Begin the turn of an entry's conversation; the states of its toolkits are there already."""
        self.turn.history, self.turn.active, self.turn.messages = history, active, []
        return self.turn
