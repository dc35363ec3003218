"""A connection to an MCP server that its callers share, and that restarts when the server has died.

A separate task holds the connection, so that a cancelled caller doesn't close it. PydanticAI's client speaks the
protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._extras import missing_extra
from llm_do._startup.code_access import must_be_open
from llm_do.concurrency.lifeline import guarded_environment
from llm_do.errors import ToolError
from llm_do.formats.toolset_config import McpConfig
from llm_do.formats.variables import UnsetVariableError, expand_variables
from llm_do.text.sanitizer import shell_word
from llm_do.toolsets.mcp.new_code import unreviewed_code
from llm_do.toolsets.mcp.server_stderr import StderrTail

if TYPE_CHECKING:
    from pydantic_ai.mcp import MCPToolset

    from llm_do.toolsets.mcp.failures import Reason
    from llm_do.toolsets.mcp.protocol import Findings
    from llm_do.toolsets.mcp.tool_review import ReviewedServer

__all__ = ["McpSession"]

_STOP_SECONDS = 10.0
_importing = threading.Lock()
_imported = threading.Event()


class McpSession:
    """A connection to one server; a server that is a command runs in `root`.

    Args:
        name: The server's name.
        config: Its configuration.
        root: The project's folder.
        variables: Returns what `${NAME}` stands for, whenever a connection is made.
    """

    def __init__(self, name: str, config: McpConfig, root: Path, variables: Callable[[], Mapping[str, str]]) -> None:
        self.name = name
        self.config = config
        self._root = root
        self._variables = variables
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[MCPToolset[Any]] | None = None
        self._stop = asyncio.Event()
        self._stderr = StderrTail()
        self.findings: Findings | None = None
        self.reviewed: ReviewedServer | None = None

    async def client(self) -> MCPToolset[Any]:
        """Return the connected client, connecting first if necessary; raise `ToolError` if the server doesn't start."""
        # Importing the client takes seconds, which don't count towards the server's timeout.
        if not _imported.is_set():
            await asyncio.to_thread(_import_client)
        async with self._lock:
            if self._task is None or self._task.done() or self._ready is None:
                await self._close()
                self._start()
            assert self._ready is not None
            try:
                async with asyncio.timeout(self.config.timeout):
                    return await asyncio.shield(self._ready)
            except TimeoutError:
                printed = self._describe_noise()
                stderr = await self.describe_stderr()
                await self._close()
                raise ToolError(
                    f"the MCP server {self.name} did not start in {self.config.timeout:g} s{printed}{stderr}",
                    hint="Raise its `timeout`, or check that it starts on its own.",
                ) from None
            except asyncio.CancelledError:
                raise
            except Exception as error:
                reason = self._explain(error)
                stderr = await self.describe_stderr()
                await self._close()
                raise ToolError(
                    f"the MCP server {self.name} did not start: {reason.text}{stderr}", hint=reason.hint
                ) from error

    async def handle_failure(self, client: MCPToolset[Any], error: BaseException) -> ToolError | None:
        """Close the connection if this error of a call means that the server is gone, so the next call restarts it.

        Return the error to raise, or None if the server is still there. A connection newer than `client` stays open.
        """
        from llm_do.toolsets.mcp.failures import is_gone

        if not is_gone(error):
            return None
        stderr = await self.describe_stderr()
        async with self._lock:
            if self._ready is not None and self._is_ready() and self._ready.result() is client:
                await self._close()
        return ToolError(f"the MCP server {self.name} is gone: {str(error).strip().partition(chr(10))[0]}{stderr}")

    async def describe_stderr(self) -> str:
        """Return the last lines of the server's standard error, as the end of a message."""
        await self._stderr.settle()
        lines = self._stderr.last_lines()
        return f"; its last output:\n{lines}" if lines else ""

    def describe(self, error: Exception) -> str:
        """Return what a request that failed came to: the HTTP status and its meaning, if the server sent one."""
        from llm_do.toolsets.mcp.failures import explain_status

        return explain_status(self.findings.status).text if self.findings and self.findings.status else str(error)

    def is_refused(self, error: BaseException) -> bool:
        """Whether the server's answer isn't read, in which case the error says so in its place."""
        from llm_do.toolsets.mcp.failures import is_refused

        return is_refused(error)

    @property
    def has_status(self) -> bool:
        """Whether the last response was an HTTP error."""
        return self.findings is not None and self.findings.status is not None

    def _describe_noise(self) -> str:
        noise = self.findings.noise if self.findings is not None else []
        return f"; it printed {noise[0][:200]!r}, which isn't MCP" if noise else ""

    def _explain(self, error: Exception) -> Reason:
        from llm_do.toolsets.mcp.failures import Reason, explain_failure

        if isinstance(error, ToolError):
            return Reason(error.message, error.hint) if error.hint else Reason(str(error))
        if self.findings is None:
            return Reason(str(error))
        return explain_failure(self.config, error, self.findings)

    async def aclose(self) -> None:
        """Stop the server."""
        async with self._lock:
            await self._close()

    def _start(self) -> None:
        must_be_open(self._root)
        self._stop = asyncio.Event()
        self._stderr = StderrTail()
        self._ready = asyncio.get_running_loop().create_future()
        # The caller may have stopped waiting before the future fails.
        self._ready.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._task = asyncio.ensure_future(self._hold(self._ready, self._stop, self._stderr))

    async def _close(self) -> None:
        task, self._task = self._task, None
        self._stop.set()
        if task is not None and not task.done():
            done, _ = await asyncio.wait({task}, timeout=_STOP_SECONDS if self._is_ready() else 0)
            if not done:
                task.cancel()
                await asyncio.wait({task}, timeout=_STOP_SECONDS)
        if self._ready is not None and not self._ready.done():
            self._ready.cancel()
        self._ready = None

    def _is_ready(self) -> bool:
        return self._ready is not None and self._ready.done()

    async def _hold(self, ready: asyncio.Future[MCPToolset[Any]], stop: asyncio.Event, stderr: StderrTail) -> None:
        """Connect, set `ready`, and stay connected until `stop` is set."""
        try:
            toolset = await self._create_client(stderr)
            async with toolset:
                if not ready.done():
                    ready.set_result(toolset)
                await stop.wait()
        except (Exception, asyncio.CancelledError) as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            if not cancelled:
                await stderr.settle()
            if not ready.done():
                ready.set_exception(ToolError("it was stopped") if cancelled else error)
            if cancelled:
                raise
        finally:
            stderr.close()

    async def _create_client(self, stderr: StderrTail) -> MCPToolset[Any]:
        from pydantic_ai.mcp import MCPToolset

        from llm_do.toolsets.mcp.protocol import CommandTransport, Findings, UrlTransport

        _silence_libraries()
        config, variables = self.config, self._variables()
        findings = self.findings = Findings()

        async def log(message: Any) -> None:
            stderr.add(str(getattr(message, "data", message)))

        if config.url is not None:
            headers = {name: _expanded(value, variables) for name, value in config.headers.items()}
            transport = UrlTransport(
                _expanded(config.url, variables), headers, findings=findings, seconds=config.timeout
            )
        else:
            assert config.command is not None
            command = [_expanded(word, variables) for word in config.command]
            new = await asyncio.to_thread(unreviewed_code, self._root, command)
            if new is not None:
                hint = f"Look at it, then `llm-do approvals accept {shell_word(new)}`, or delete it."
                raise ToolError(f"it might load {new}, which a model's tool made and no one has agreed to", hint=hint)
            transport = CommandTransport(
                command,
                environment={
                    **{name: _expanded(value, variables) for name, value in config.env.items()},
                    **guarded_environment(),
                },
                cwd=self._root,
                log_file=await stderr.open(),
                findings=findings,
                seconds=config.timeout,
            )
        return MCPToolset[Any](
            transport,
            id=self.name,
            tool_error_behavior="failed",
            init_timeout=config.timeout,
            log_handler=log,
            message_handler=findings.add_message,
        )


def _import_client() -> None:
    """Import the client once; the lock keeps other threads from using a partially imported module."""
    with _importing:
        try:
            importlib.import_module("pydantic_ai.mcp")
            importlib.import_module("llm_do.toolsets.mcp.failures")
        except ImportError as error:
            missing = missing_extra("mcp", "a toolset of type `mcp`")
            raise ToolError(missing.message, hint=missing.hint) from error
        _imported.set()


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with its references to variables replaced."""
    try:
        return expand_variables(text, variables)
    except UnsetVariableError as error:
        raise ToolError(
            f"the environment variable {error.name} is not set",
            hint="Set it in the environment of llm-do, or in the project's .env.",
        ) from None


def _silence_libraries() -> None:
    """Keep the libraries from reporting a broken server on our standard error: our messages say what matters."""
    for name in ("mcp", "fastmcp"):
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
    with contextlib.suppress(ValueError):
        logging.getLogger("fastmcp").propagate = True
    lines = logging.getLogger("mcp.client.stdio")
    if not any(isinstance(filter, _Once) for filter in lines.filters):
        lines.addFilter(_Once())


class _Once(logging.Filter):
    """Let each message through once: a server that logs to its standard output causes one for each line."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the message is new."""
        new = record.msg not in self._logged
        self._logged.add(record.msg)
        return new
