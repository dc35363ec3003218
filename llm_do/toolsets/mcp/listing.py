"""Asks servers for their tools outside a run, and keeps the answers in the project's local folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from llm_do._bounded_files import read_bounded_text
from llm_do.errors import ToolError
from llm_do.files.local_folder import make_folder
from llm_do.formats.server_listings import FILE, ListedTool, read_listings, server_digest, write_listings
from llm_do.formats.toolset_config import McpConfig, parse_options
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.runtime.record.project_variables import project_variables
from llm_do.toolsets.mcp.server_session import McpSession

if TYPE_CHECKING:
    from mcp.types import Tool as McpTool

    from llm_do.project.project import Project

__all__ = ["list_servers"]


async def list_servers(project: Project) -> dict[str, tuple[list[ListedTool] | str, dict[str, str]]]:
    """Return each server's tools, or why it has none, with the tools that were left out; and keep them."""
    servers = {
        item.name: (item.value, config)
        for item in project.registry.values()
        if isinstance(item.value, BuiltinToolset) and item.value.config.get("type") == "mcp"
        if isinstance(config := parse_options(item.name, item.value.config), McpConfig)
    }
    variables = partial(project_variables, project.root, project.env_file)
    sessions = [McpSession(name, config, project.root, variables) for name, (_, config) in servers.items()]
    answers = await asyncio.gather(*map(_tools_of, sessions))
    found = {session.name: answer for session, answer in zip(sessions, answers, strict=True)}
    kept = {
        name: (server_digest(servers[name][0].config), tools)
        for name, (tools, _) in found.items()
        if not isinstance(tools, str)
    }
    _keep(project, kept)
    return found


async def _tools_of(session: McpSession) -> tuple[list[ListedTool] | str, dict[str, str]]:
    try:
        client = await session.client()
        async with asyncio.timeout(session.config.timeout):
            tools = await client.list_tools()
    except TimeoutError:
        return f"it did not list its tools in {session.config.timeout:g} s", {}
    except ToolError as error:
        return f"{error.message}. {error.hint}" if error.hint else error.message, {}
    except Exception as error:  # noqa: BLE001 (whatever a server does, the others are listed)
        return session.describe(error), {}
    finally:
        await session.aclose()
    left_out = session.findings.unusable if session.findings is not None else {}
    return [_listed(tool) for tool in tools], dict(left_out)


def _listed(tool: McpTool) -> ListedTool:
    said = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations is not None else {}
    return ListedTool(tool.name, tool.description, tool.input_schema, said)


def _keep(project: Project, kept: Mapping[str, tuple[str, Sequence[ListedTool]]]) -> None:
    """Replace the file; what is known of servers that didn't answer now stays."""
    file = make_folder(project.root) / FILE
    known: Mapping[str, tuple[str, Sequence[ListedTool]]] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        known = read_listings(read_bounded_text(file))
    partial = file.with_name(f"{FILE}.{os.getpid()}")
    partial.write_text(write_listings({**known, **kept}), encoding="utf-8")
    partial.replace(file)
