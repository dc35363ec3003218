"""`ProjectServer`: a project as an MCP server over stdin and stdout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TextIO, TypeAlias, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from llm_do.mcp_server.client_call import ClientCall, RequestContext
from llm_do.mcp_server.client_questions import ANSWERS, can_ask, refuse
from llm_do.mcp_server.offered_tools import offered_tools
from llm_do.mcp_server.readable_requests import ReadableRequests, Replies
from llm_do.project.project import Project
from llm_do.runtime.approval.broker import RunApprovalPolicy
from llm_do.runtime.context.user_questions import AskUser
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.runtime import Runtime
from llm_do.runtime.session.runtime_config import RuntimeConfig

__all__ = ["Configure", "ProjectServer"]

Configure: TypeAlias = Callable[[RunApprovalPolicy, "AskUser | None"], RuntimeConfig]
"""Returns the configuration of a call's session, given who answers its questions."""

PATIENCE = 900.0
"""Seconds that a run waits for a client that answers by calling again."""

CLOSING = 1.0
"""Seconds that runs have to end once the client is gone."""


class ProjectServer:
    """Serves a project to one MCP client.

    Each call is a run with a session of its own, so that no question holds up another call and no answer outlives the
    call that it was given for.

    Args:
        project: The project.
        configure: Makes the configuration of a call's session.
        version: The version that clients see.
        only: The agents, flows and functions to offer; empty for the entry and all agents and flows.
        on_event: Receives the events of all runs.

    Raises:
        UsageError: The project has nothing of a name in `only`.
    """

    def __init__(
        self,
        project: Project,
        configure: Configure,
        *,
        version: str,
        only: Sequence[str] = (),
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        self._project = project
        self._configure = configure
        self._on_event = on_event
        self._tools = offered_tools(project, only)
        self._parked: dict[str, tuple[ClientCall, asyncio.TimerHandle]] = {}
        self._runs: set[asyncio.Task[object]] = set()
        self.server = Server(
            project.name or "llm-do",
            version=version,
            instructions="Each tool runs an agent or a flow of the project; a run may take minutes.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def serve(self, stdin: TextIO, stdout: TextIO) -> None:
        """Serve until the client closes stdin, then end the runs that are left.

        Args:
            stdin: What the client sends; not the process's own stdin, which child processes would inherit.
            stdout: What the client gets.
        """
        try:
            replies = Replies(stdout)
            requests = ReadableRequests(stdin, replies.write)
            # The SDK iterates over the one, and writes and flushes the other.
            async with stdio_server(cast("Any", requests), cast("Any", replies)) as (read, write):
                await self.server.run(read, write, self.server.create_initialization_options())
        finally:
            await self._end_runs()

    async def _end_runs(self) -> None:
        for run in self._runs:
            run.cancel()
        if self._runs:
            await asyncio.wait(self._runs, timeout=CLOSING)

    async def _list_tools(self, context: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool.definition for tool in self._tools.values()])

    async def _call_tool(
        self, context: RequestContext, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        call = self._resumed(context, params) if params.request_state is not None else self._started(context, params)
        answer = await call.wait()
        if isinstance(answer, InputRequiredResult):
            timer = asyncio.get_running_loop().call_later(PATIENCE, self._give_up, call)
            self._parked[call.token] = call, timer
        return answer

    def _started(self, context: RequestContext, params: CallToolRequestParams) -> ClientCall:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}")
        if withheld := tool.withheld.intersection(params.arguments or ()):
            raise MCPError(INVALID_PARAMS, f"{params.name} has no argument {min(withheld)!r}")
        call = ClientCall(params, context)
        asks = can_ask(context.session.client_capabilities)
        approvals = RunApprovalPolicy(approval_callback=call.approve if asks else refuse, answers=ANSWERS)
        runtime = Runtime(self._project, config=self._configure(approvals, call.answer if asks else None))
        if self._on_event is not None:
            runtime.on(None, self._on_event)
        run = call.start(runtime, tool.entry)
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        return call

    def _resumed(self, context: RequestContext, params: CallToolRequestParams) -> ClientCall:
        """The run that waits for the answers of a request; its token is a secret that only its client has."""
        found = self._parked.get(params.request_state or "")
        if found is None or not found[0].continues(params):
            raise MCPError(INVALID_PARAMS, "no call waits for these answers: it has ended, or it was another one")
        call, timer = self._parked.pop(found[0].token)
        timer.cancel()
        call.take_answers(params, context)
        return call

    def _give_up(self, call: ClientCall) -> None:
        del self._parked[call.token]
        call.cancel()
