"""Requests by HTTP: the built-in toolset `http`, and those of that type that a manifest configures."""

from __future__ import annotations

from typing import Any

from pydantic_ai import FunctionToolset

from llm_do.formats.toolset_types.http_config import HttpConfig
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.http.http_tools import http_toolset

__all__ = ["http"]


def http(ctx: BuiltinContext, config: HttpConfig | None = None) -> FunctionToolset[Any]:
    """Get pages and send requests by HTTP, with approval of each URL that no rule allows.

    Example:
        >>> from pathlib import Path
        >>> list(http(BuiltinContext("http", Path("."), Path("."))).tools)
        ['http_get', 'http_request']
    """
    return http_toolset(ctx.name, config or HttpConfig(type="http"))
