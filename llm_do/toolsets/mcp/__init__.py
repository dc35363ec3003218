"""MCP servers as toolsets: what a manifest's `{"type": "mcp", ...}` describes."""

from __future__ import annotations

from pydantic import ValidationError

from llm_do.errors import UsageError
from llm_do.formats.toolset_config import McpConfig, server_faults
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.mcp.server_toolset import McpServerToolset

__all__ = ["configured"]


def configured(ctx: BuiltinContext) -> McpServerToolset:
    """The toolset of one server; nothing is started before an agent that lists it runs.

    Args:
        ctx: Its options are those of `McpConfig`.

    Returns:
        A toolset that runs may share.

    Raises:
        UsageError: An option is wrong, or says something that means nothing for such a server.

    Example:
        >>> from pathlib import Path
        >>> options = {"type": "mcp", "command": ["search-server"], "include": ["search_*"]}
        >>> configured(BuiltinContext("search", Path("."), Path("."), options=options)).prefix
        'search'
    """
    try:
        given = {name: value for name, value in ctx.options.items() if value is not None}
        config = McpConfig.model_validate({"type": "mcp", **given})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"]))
        raise UsageError(f"the MCP server {ctx.name} has a wrong option {where}: {fault['msg']}") from error
    if (config.command is None) == (config.url is None):
        raise UsageError(f"the MCP server {ctx.name} needs either a `command` or a `url`")
    for option, why in server_faults(config.model_dump()).items():
        raise UsageError(f"the MCP server {ctx.name} has an option `{option}`, which {why}", hint="Take it out.")
    return McpServerToolset(ctx.name, config, ctx.project_root)
