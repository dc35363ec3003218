"""Reads what `llm-do tools --connect` has learned of the project's MCP servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_do._bounded_files import read_bounded_text
from llm_do.formats.server_listings import FILE, ListedTool, read_listings, server_digest

__all__ = ["remembered_tools"]

_FOLDER = ".llm-do"
_LARGEST = 16 * 1024 * 1024


def remembered_tools(root: Path, configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Sequence[ListedTool]]:
    """Return the tools of the servers that are still configured as they were when they were asked."""
    file = root / _FOLDER / FILE
    if not any(config.get("type") == "mcp" for config in configs.values()) or (root / _FOLDER).is_symlink():
        return {}
    try:
        if file.is_symlink() or file.stat().st_size > _LARGEST:
            return {}
        listings = read_listings(read_bounded_text(file))
    except (OSError, UnicodeDecodeError):
        return {}
    return {
        name: tools
        for name, (digest, tools) in listings.items()
        if name in configs and digest == server_digest(configs[name])
    }
