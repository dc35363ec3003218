"""The factories of the built-in toolsets, each imported when an agent first has its toolset.

What is known of their tools without them is `llm_do.project.tools.builtin_toolsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["builtin_factory"]

_FACTORIES: Mapping[str, str] = {
    "ask_user": "ask_user.ask_user",
    "dynamic_agents": "dynamic_agents.dynamic_agents",
    "filesystem": "filesystem.configured",
    "filesystem_cwd": "filesystem.filesystem_cwd",
    "filesystem_cwd_ro": "filesystem.filesystem_cwd_ro",
    "filesystem_project": "filesystem.filesystem_project",
    "filesystem_project_ro": "filesystem.filesystem_project_ro",
    "http": "http.http",
    "mcp": "mcp.configured",
    "memory": "memory.memory",
    "shell": "shell.configured",
    "shell_file_ops": "shell.shell_file_ops",
    "shell_readonly": "shell.shell_readonly",
    "skills": "skills.skills",
    "todo": "todo.todo",
}
"""The function that makes each toolset, with its module below this package; a test imports all of them."""


def builtin_factory(kind: str) -> Callable[..., Any]:
    """The factory of a built-in toolset, or of a `type` that the manifest configures."""
    if kind not in _FACTORIES:
        raise LookupError(f"the built-in toolset {kind!r} has no factory in {__name__}")
    module, _, name = _FACTORIES[kind].rpartition(".")
    return getattr(import_module(f"llm_do.toolsets.{module}"), name)
