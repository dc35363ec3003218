"""How we speak MCP: FastMCP's transports with a session that gives no server more time, or more trust, than it needs.

- Whether a server knows the newest version of the protocol is asked within a share of its time.
- A tool with a broken schema is left out, and the others are offered.
- Results aren't checked against the server's own schema: it is the server's promise to itself, and may take for ever.
- What a server sends is read in messages of bounded size, and a large one is parsed in a worker thread.
- A list of tools is refused if it is longer than can be offered to a model.
- The status of an HTTP response and lines that aren't messages are kept, because they say what went wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import anyio
import httpx2
from fastmcp.client.transports import ClientTransport, StreamableHttpTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions, VersionAwareClientSession
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.types import INTERNAL_ERROR, PARSE_ERROR, CallToolResult, Tool
from pydantic import ValidationError
from typing_extensions import Unpack

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.project.tools.argument_schemas import find_unusable_part
from llm_do.text.large_data.conversion import is_large, weigh
from llm_do.toolsets.mcp.http_answers import BoundedTransport
from llm_do.toolsets.mcp.large_answers import LARGE_MESSAGE, REFUSED, LargeAnswer, LargeAnswers
from llm_do.toolsets.mcp.large_json import read_large_json
from llm_do.toolsets.mcp.large_results import set_result, small_result
from llm_do.toolsets.mcp.server_lines import LINES, answers_of_connection

if TYPE_CHECKING:
    import ssl

__all__ = ["CommandTransport", "Findings", "UrlTransport"]

_PROBE_SHARE = 0.1
_LONGEST_PROBE = 1.0
_LONGEST_STREAM = 300.0
_NOISE = 3
_NEEDED = {"name", "description", "inputSchema"}
_MOST_TOOLS = 1000
_MOST_PARTS = 50_000
"""Parts of a list of tools as `weigh` counts them: some fifty for each tool."""


@dataclass
class Findings:
    """What was learned about a server while it was used.

    Args:
        status: The HTTP status of the last response that was an error.
        noise: The first lines it sent that aren't messages of the protocol.
        unusable: The tools that are left out, and why.
    """

    status: int | None = None
    noise: list[str] = field(default_factory=list[str])
    unusable: dict[str, str] = field(default_factory=dict[str, str])

    async def add_message(self, message: object) -> None:
        """Keep what came instead of a message."""
        if isinstance(message, ValueError) and len(self.noise) < _NOISE:
            errors: Any = getattr(message, "errors", lambda: ())()
            self.noise.extend(str(error["input"]) for error in errors[:1] if str(error.get("input", "")).strip())

    async def add_response(self, response: httpx2.Response) -> None:
        """Keep the status of an error."""
        if response.request.method == "POST" and response.status_code >= httpx2.codes.BAD_REQUEST:
            self.status = response.status_code


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Requests with our limits, and listings without unusable tools."""

    def __init__(self, read: Any, write: Any, findings: Findings, answers: LargeAnswers, timeout: float) -> None:
        super().__init__(read, write)
        self._findings = findings
        self._answers = answers
        self._listed_tools = self._listed_parts = 0
        self._probe = min(timeout * _PROBE_SHARE, _LONGEST_PROBE)

    async def send_raw_request(
        self, method: str, params: Any, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Send a request and wait for its result."""
        self._findings.status = None
        if method == "server/discover":
            opts = {**(opts or {}), "timeout": self._probe}
        result = await super().send_raw_request(method, params, opts, **more)
        large = self._answers.take(result)
        if large is not None:
            result = await self._read_large(method, large)
        if method == "tools/list":
            if not cast("dict[str, object]", params or {}).get("cursor"):
                self._listed_tools = self._listed_parts = 0
            tools = cast("object", result.get("tools"))
            if isinstance(tools, list):
                result = {**result, "tools": await run_in_worker(self._usable, cast("list[object]", tools))}
        return result

    async def _read_large(self, method: str, answer: LargeAnswer) -> dict[str, Any]:
        try:
            read = await run_in_worker(read_large_json, answer.data)
            if answer.is_error:
                raise _error_of(read)
            if method != "tools/call":
                return read if method == "tools/list" else await run_in_worker(_checked, read)
            small, value = await run_in_worker(small_result, read)
        except ValueError as error:
            raise MCPError(PARSE_ERROR, f"the server's answer can't be read: {error}", REFUSED) from error
        if small.get("isError") is not True and not set_result(value):
            raise MCPError(PARSE_ERROR, f"the server's answer is longer than {LARGE_MESSAGE // 2**10} KiB", REFUSED)
        return small

    def _usable(self, tools: list[object]) -> list[object]:
        self._listed_tools += len(tools)
        if self._listed_tools > _MOST_TOOLS:
            raise MCPError(PARSE_ERROR, f"it has more than {_MOST_TOOLS} tools", REFUSED)
        usable = [tool for tool in tools if self._is_usable(tool)]
        self._listed_parts += weigh(usable, _MOST_PARTS)
        if self._listed_parts >= _MOST_PARTS:
            raise MCPError(PARSE_ERROR, f"its list of tools has {_MOST_PARTS} values or more", REFUSED)
        return usable

    def _is_usable(self, tool: object) -> bool:
        if not isinstance(tool, dict):
            self._findings.unusable["one without a name"] = "it is not an object"
            return False
        declared = cast("dict[str, object]", tool)
        name = declared.get("name")
        if not isinstance(name, str) or not name:
            self._findings.unusable["one without a name"] = "it has no name"
            return False
        reason = "there is none" if "inputSchema" not in declared else find_unusable_part(declared["inputSchema"])
        if reason is not None:
            self._findings.unusable[name] = f"its inputSchema can't be used: {reason}"
            return False
        declared.pop("outputSchema", None)  # FastMCP would check results with it, on the event loop
        try:
            Tool.model_validate(declared, by_name=False)
        except ValidationError:  # of what only describes it
            for key in set(declared) - _NEEDED:
                del declared[key]
            if not isinstance(declared.get("description", ""), str):
                del declared["description"]
        return True


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that the SDK checks while nothing else has a turn."""
    if is_large({**answer, "instructions": None}):
        raise ValueError("it has too many parts")
    return answer


def _error_of(error: dict[str, Any]) -> MCPError:
    code, message = error.get("code"), error.get("message")
    text = message[:LARGE_MESSAGE] if isinstance(message, str) else "no message"
    return MCPError(code if isinstance(code, int) else INTERNAL_ERROR, text)


def _session_class(findings: Findings, answers: LargeAnswers, timeout: float) -> type[ClientSession]:
    class Session(VersionAwareClientSession):
        def __init__(self, read_stream: Any, write_stream: Any, **options: Any) -> None:
            super().__init__(dispatcher=_Dispatcher(read_stream, write_stream, findings, answers, timeout), **options)

        async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
            """Accept every result."""

    return Session


class _OurSession(ClientTransport):
    """A transport that connects with our session; before the SDK's own among a class's bases."""

    _session_class: type[ClientSession]

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Connect with our session."""
        options = replace(transport_options or TransportOptions(), session_class=self._session_class)
        async with super().connect_session(transport_options=options, **session_kwargs) as session:
            yield session


class CommandTransport(ClientTransport):
    """A server that is a command. It gets the given environment and the protocol's minimal one."""

    def __init__(
        self,
        command: list[str],
        *,
        environment: dict[str, str],
        cwd: Path,
        log_file: TextIO,
        findings: Findings,
        seconds: float,
    ) -> None:
        self._server = StdioServerParameters(
            command=command[0], args=command[1:], env=environment, cwd=cwd, encoding=LINES
        )
        self._log_file = log_file
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._answers = LargeAnswers()
        self._session_class = _session_class(findings, self._answers, seconds)

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncGenerator[ClientSession]:
        """Start the server, and connect with our session."""
        ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        # In a task of its own, which is never cancelled: the SDK's client leaves the server running if it is.
        self._stop, self._task = stop, asyncio.create_task(self._hold(ready, stop, session_kwargs))
        try:
            await asyncio.wait({ready, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                await self._task
            yield ready.result()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop the server; FastMCP calls it again if its first call was cancelled."""
        self._stop.set()
        if self._task is not None:
            with anyio.CancelScope(shield=True):
                await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # once the session has ended, it is of no interest

    async def _hold(self, ready: asyncio.Future[ClientSession], stop: asyncio.Event, options: SessionKwargs) -> None:
        """Stay connected until `stop` is set."""
        answers_of_connection.set(self._answers)  # of this task
        async with (
            stdio_client(self._server, errlog=self._log_file) as (read, write),
            self._session_class(read, write, **options) as session,
        ):
            ready.set_result(session)
            await stop.wait()


class UrlTransport(_OurSession, StreamableHttpTransport):
    """A server at an address."""

    def __init__(self, url: str, headers: dict[str, str], *, findings: Findings, seconds: float) -> None:
        answers = LargeAnswers()

        def client(headers: Any = None, timeout: Any = None, auth: Any = None, **_: object) -> httpx2.AsyncClient:
            from llm_do.models.connections.http_clients import proxy_for, shared_ssl_context

            # Redirects within the address's origin are followed by the transport itself. As for providers, None is no
            # context until one is needed: making one takes longer than a call of a local server.
            verify: ssl.SSLContext = shared_ssl_context(url)  # pyright: ignore[reportAssignmentType]
            return httpx2.AsyncClient(
                transport=BoundedTransport(
                    httpx2.AsyncHTTPTransport(verify=verify, proxy=proxy_for(url)), answers, seconds
                ),
                headers=headers,
                auth=auth,
                timeout=timeout or httpx2.Timeout(seconds, read=_LONGEST_STREAM),
                event_hooks={"response": [findings.add_response]},
            )

        super().__init__(url, headers, httpx_client_factory=client)
        self._session_class = _session_class(findings, answers, seconds)
