"""The toolset of an MCP server: it offers the configured tools, which need approval like any other."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic_ai import ModelRetry, RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_ai.toolsets.external import TOOL_SCHEMA_VALIDATOR

from llm_do.errors import RunError, ToolError, UsageError
from llm_do.formats.server_listings import ListedTool, model_names
from llm_do.formats.toolset_config import McpConfig
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.tools.tool_schemas import is_included
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.resources import ServerToolset
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.toolsets.mcp.large_results import call_tool
from llm_do.toolsets.mcp.server_session import McpSession
from llm_do.toolsets.mcp.tool_review import ReviewedServer, ToolReview

__all__ = ["McpServerToolset"]

_LONGEST_PREFIX = 55


class McpServerToolset(ServerToolset):
    """The tools of one MCP server. The connection belongs to the session of the calling run."""

    def __init__(self, name: str, config: McpConfig, root: Path) -> None:
        super().__init__(name if config.prefix is None else config.prefix)
        self.name = name
        self.config = config
        self.root = root
        self._own: McpSession | None = None

    async def for_run(self, ctx: RunContext[CallContext]) -> McpServerToolset:
        """Return this toolset, or a copy with its own server if each call has one."""
        if self.config.scope == "session":
            return self
        toolset = copy.copy(self)
        toolset._own = McpSession(self.name, self.config, self.root, ctx.deps.runtime.shared.variables)
        return toolset

    def with_prefix(self, prefix: str | None) -> Self:
        """Return the same tools with an agent's prefix; raise `UsageError` if it leaves too little room for names."""
        toolset = super().with_prefix(prefix)
        if len(toolset.prefix) > _LONGEST_PREFIX:
            raise UsageError(
                f"the MCP server {self.name} has a prefix of {len(toolset.prefix)} characters, which leaves too little "
                "room for its tools' names",
                hint=f"Give it a `prefix` of at most {_LONGEST_PREFIX}.",
            )
        return toolset

    async def __aexit__(self, *exception: object) -> None:
        if self._own is not None:
            await self._own.aclose()

    @property
    def id(self) -> str:
        """The server's name."""
        return self.name

    async def get_tools(self, ctx: RunContext[CallContext]) -> dict[str, ToolsetTool[CallContext]]:
        """Return the tools that are offered, by names that every provider accepts.

        A server that is unavailable raises `RunError` if it is required; otherwise the run continues without it.
        """
        transport = ctx.deps.runtime.config.transport
        if transport is not None and (kept := transport.listed(self.name)) is not None:
            return self._recorded(kept, ctx)
        session = self._session(ctx.deps)
        try:
            found = await self._list_tools(session, ctx)
        except ToolError as error:
            if self.config.required:
                raise RunError(
                    error.message,
                    hint=error.hint or "Check that the server starts on its own, or set `required: false`.",
                    agent_path=ctx.deps.path,
                ) from error
            _warn_once(ctx.deps, self.name, f"{error.message}; the run continues without it")
            return {}
        for name, reason in (session.findings.unusable if session.findings is not None else {}).items():
            if is_included(name, self.config.include, self.config.exclude):
                _warn_once(ctx.deps, f"{self.name} {name}", f"the MCP server {self.name}: {name} is left out, {reason}")
        await asyncio.sleep(0)  # a list of hundreds of tools takes a while at each of these steps, and at what follows
        reviews = await self._review(session, found, ctx.deps)
        await asyncio.sleep(0)
        offered = (own for own in found if is_included(own, self.config.include, self.config.exclude))
        tools = {
            name: replace(found[own], toolset=self, tool_def=_definition(name, found[own].tool_def, reviews[own]))
            for own, name in model_names(offered, self.prefix)
        }
        if transport is not None:
            names = [f"{self.prefix}_{name}" if self.prefix else name for name in tools]
            shown = [review.shown for review in reviews.values()]
            listed = [ListedTool(each.name, each.description, each.schema) for each in shown]
            transport.keep_listing(self.name, listed, names)
        await asyncio.sleep(0)
        return tools

    async def _review(
        self, session: McpSession, found: Mapping[str, ToolsetTool[CallContext]], call: CallContext
    ) -> Mapping[str, ToolReview]:
        """Compare the server's tools with what was reviewed of them."""
        if session.reviewed is None:
            lock = call.runtime.project.lock
            locked = lock.servers.get(self.name) if lock is not None else None
            session.reviewed = ReviewedServer(self.name, self.config, self.root, locked)
        reviewed = session.reviewed
        reviews = await reviewed.review({own: _listed(own, tool.tool_def) for own, tool in found.items()})
        if reviewed.fault is not None:
            _warn_once(call, f"{self.name} seen", reviewed.fault)
        if call.runtime.config.frozen:
            reviewed.check_frozen(reviews)
        for own, review in reviews.items():
            if review.state == "changed" and is_included(own, self.config.include, self.config.exclude):
                _warn_once(
                    call,
                    f"{self.name} {own} changed",
                    f"the MCP server {self.name} has changed {own}, which is withdrawn until a person has reviewed it",
                )
        return reviews

    def _recorded(
        self, kept: Sequence[ListedTool], ctx: RunContext[CallContext]
    ) -> dict[str, ToolsetTool[CallContext]]:
        """The tools as they were recorded; the server isn't asked."""
        own = {tool.name: tool for tool in kept if is_included(tool.name, self.config.include, self.config.exclude)}
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name,
                    description=own[each].description,
                    parameters_json_schema=dict(own[each].schema),
                    metadata=self._metadata(each),
                ),
                max_retries=ctx.max_retries,
                args_validator=TOOL_SCHEMA_VALIDATOR,
            )
            for each, name in model_names(own, self.prefix)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[CallContext], tool: ToolsetTool[CallContext]
    ) -> Any:
        """Call a tool of the server; raise `ToolFailed` if it failed, `ToolError` if the server is gone or too slow."""
        session = self._session(ctx.deps)
        own = str((tool.tool_def.metadata or {}).get("mcp_name", name))
        if session.reviewed is not None and ctx.tool_call_id in ctx.deps.frame.approvals.by_person:
            await session.reviewed.accept(own)
        client = await session.client()
        timer = asyncio.timeout(self.config.timeout)
        try:
            async with timer:
                return await call_tool(client, own, tool_args)
        except ToolFailed:
            raise
        except TimeoutError as error:
            if not timer.expired():
                raise
            stderr = await session.describe_stderr()
            raise ToolError(
                f"the MCP server {self.name} did not answer {own} in {self.config.timeout:g} s{stderr}"
            ) from error
        except Exception as error:
            if (gone := await session.handle_failure(client, error)) is not None:
                raise gone from error
            if isinstance(error, ModelRetry) and not session.has_status and not session.is_refused(error):
                raise
            raise ToolError(f"{own} failed at the MCP server {self.name}: {session.describe(error)}") from error

    async def _list_tools(
        self, session: McpSession, ctx: RunContext[CallContext]
    ) -> dict[str, ToolsetTool[CallContext]]:
        client = await session.client()
        try:
            async with asyncio.timeout(self.config.timeout):
                return await client.get_tools(ctx)
        except TimeoutError as error:
            stderr = await session.describe_stderr()
            raise ToolError(
                f"the MCP server {self.name} did not list its tools in {self.config.timeout:g} s{stderr}",
                hint="Give it a longer `timeout` in the manifest, or see that it starts by itself.",
            ) from error
        except Exception as error:
            gone = await session.handle_failure(client, error)
            hint = "Make it offer fewer tools, if it can, or set `required: false` to run without it."
            raise gone or ToolError(
                f"the MCP server {self.name} did not list its tools: {session.describe(error)}",
                hint=hint if session.is_refused(error) else None,
            ) from error

    def _session(self, call: CallContext) -> McpSession:
        if self._own is not None:
            return self._own
        key = ("mcp", self.name, self.config.model_dump_json())
        variables = call.runtime.shared.variables
        return call.runtime.resources.get(key, lambda: McpSession(self.name, self.config, self.root, variables))

    def listed_definitions(self) -> list[ToolDefinition]:
        """Return the tools that the server had when it was last asked, without the prefix."""
        listed = {tool.name: tool for tool in self.listed}
        offered = (own for own in listed if is_included(own, self.config.include, self.config.exclude))
        return [
            ToolDefinition(
                name=name,
                description=listed[own].description,
                parameters_json_schema=dict(listed[own].schema),
                metadata=self._metadata(own),
            )
            for own, name in model_names(offered, self.prefix)
        ]

    def _metadata(self, own: str) -> dict[str, Any]:
        traits = ToolTraits(ToolFacts("mcp"), toolset=self.name, tool=own, unchecked=True)
        return {"mcp_name": own, **traits.metadata()}


def _listed(own: str, definition: ToolDefinition) -> ListedTool:
    said: Mapping[str, Any] = (definition.metadata or {}).get("annotations") or {}
    annotations = {key: value for key, value in said.items() if value is not None}
    return ListedTool(own, definition.description, definition.parameters_json_schema, annotations)


def _definition(name: str, definition: ToolDefinition, review: ToolReview) -> ToolDefinition:
    """A tool as its model sees it, with the traits that its review gives it."""
    metadata = {**(definition.metadata or {}), "mcp_name": review.now.name, **review.traits().metadata()}
    shown = review.shown
    return replace(
        definition,
        name=name,
        description=shown.description,
        parameters_json_schema=dict(shown.schema),
        metadata=metadata,
    )


def _warn_once(call: CallContext, what: str, message: str) -> None:
    """Warn once in a run that it continues without a server or one of its tools."""
    warned = call.run.memory.setdefault("mcp_without", set())
    if what not in warned:
        warned.add(what)
        call.warn(message)
