"""An MCP server's tools as tools of ours: chosen and named as configured, asked about like any other."""

from __future__ import annotations

import asyncio
import copy
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets.abstract import ToolsetTool

from llm_do.errors import RunError, ToolError, UsageError
from llm_do.formats.toolset_config import McpConfig
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.tool_schemas import is_included
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.resources import ServerToolset
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.toolsets.mcp.server_session import McpSession

__all__ = ["McpServerToolset"]

_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
_LONGEST_PREFIX = 55


class McpServerToolset(ServerToolset):
    """The tools of one MCP server. The connection belongs to the session of whoever calls them.

    Args:
        name: The server's name in the project.
        config: How it is reached, and which of its tools are offered.
        root: The project's folder.
    """

    def __init__(self, name: str, config: McpConfig, root: Path) -> None:
        super().__init__(name if config.prefix is None else config.prefix)
        self.name = name
        self.config = config
        self.root = root
        self._own: McpSession | None = None

    async def for_run(self, ctx: RunContext[CallContext]) -> McpServerToolset:
        """Itself, or where each call has a server of its own, a toolset with one."""
        if self.config.scope == "session":
            return self
        mine = copy.copy(self)
        mine._own = McpSession(self.name, self.config, self.root)
        return mine

    def under(self, prefix: str | None) -> Self:
        """The same tools under the prefix that an agent names.

        Raises:
            UsageError: It leaves too little room for their names.
        """
        made = super().under(prefix)
        if len(made.prefix) > _LONGEST_PREFIX:
            raise UsageError(
                f"the MCP server {self.name} has a prefix of {len(made.prefix)} characters, which leaves too little "
                "room for its tools' names",
                hint=f"Give it a `prefix` of at most {_LONGEST_PREFIX}.",
            )
        return made

    async def __aexit__(self, *exception: object) -> None:
        if self._own is not None:
            await self._own.aclose()

    @property
    def id(self) -> str:
        """The server's name."""
        return self.name

    async def get_tools(self, ctx: RunContext[CallContext]) -> dict[str, ToolsetTool[CallContext]]:
        """The server's tools that are offered, by names that every provider takes.

        Raises:
            RunError: The server can't be had, and the run can't do without it.
        """
        session = self._session(ctx.deps)
        try:
            found = await self._listed(session, ctx)
        except ToolError as error:
            if self.config.required:
                raise RunError(
                    error.message,
                    hint="See that it starts by itself, or set `required: false` to go on without it.",
                    agent_path=ctx.deps.path,
                ) from error
            _warn_once(ctx.deps, self.name, error.message)
            return {}
        tools: dict[str, ToolsetTool[CallContext]] = {}
        for own, tool in found.items():
            if is_included(own, self.config.include, self.config.exclude):
                name = self._shown(own, tools)
                tools[name] = replace(tool, toolset=self, tool_def=self._definition(name, own, tool))
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[CallContext], tool: ToolsetTool[CallContext]
    ) -> Any:
        """Call a tool of the server; whatever becomes of the server, the call ends in time.

        Raises:
            ToolError: The server is gone, or did not answer in time.
            ToolFailed: The tool failed.
        """
        session = self._session(ctx.deps)
        own = str((tool.tool_def.metadata or {}).get("mcp_name", name))
        client = await session.client()
        timer = asyncio.timeout(self.config.timeout)
        try:
            async with timer:
                return await client.direct_call_tool(own, tool_args)
        except ToolFailed:
            raise
        except TimeoutError as error:
            if not timer.expired():
                raise
            said = await session.said()
            raise ToolError(
                f"the MCP server {self.name} did not answer {own} in {self.config.timeout:g} s{said}"
            ) from error
        except Exception as error:
            if (gone := await session.failed(client, error)) is not None:
                raise gone from error
            if isinstance(error, ModelRetry):
                raise
            raise ToolError(f"{own} failed at the MCP server {self.name}: {error}") from error

    async def _listed(self, session: McpSession, ctx: RunContext[CallContext]) -> dict[str, ToolsetTool[CallContext]]:
        client = await session.client()
        try:
            async with asyncio.timeout(self.config.timeout):
                return await client.get_tools(ctx)
        except TimeoutError as error:
            said = await session.said()
            raise ToolError(
                f"the MCP server {self.name} did not tell its tools in {self.config.timeout:g} s{said}"
            ) from error
        except Exception as error:
            gone = await session.failed(client, error)
            raise gone or ToolError(f"the MCP server {self.name} did not tell its tools: {error}") from error

    def _session(self, call: CallContext) -> McpSession:
        if self._own is not None:
            return self._own
        key = ("mcp", self.name, self.config.model_dump_json())
        return call.runtime.resources.get(key, lambda: McpSession(self.name, self.config, self.root))

    def _shown(self, own: str, taken: dict[str, Any]) -> str:
        """The name a model sees, without the prefix: the server's own, made fit for every provider."""
        room = _LONGEST - (len(self.prefix) + 1 if self.prefix else 0)
        plain = _UNUSABLE.sub("_", own) or "tool"
        if not self.prefix and plain[0] in "0123456789-":
            plain = f"_{plain}"
        plain = plain[:room]
        name, number = plain, 1
        while name in taken:
            number += 1
            ending = f"_{number}"
            name = plain[: room - len(ending)] + ending
        return name

    def _definition(self, name: str, own: str, tool: ToolsetTool[CallContext]) -> Any:
        traits = ToolTraits(ToolFacts("mcp"), toolset=self.name, tool=own, unchecked=True)
        metadata = {**(tool.tool_def.metadata or {}), "mcp_name": own, **traits.metadata()}
        return replace(tool.tool_def, name=name, metadata=metadata)


def _warn_once(call: CallContext, name: str, message: str) -> None:
    """Say once in a run that it goes on without a server."""
    told = call.run.memory.setdefault("mcp_without", set())
    if name not in told:
        told.add(name)
        call.warn(f"{message}; the run goes on without it")
