"""The toolsets that every agent can list by name, as import paths: linking needs their names, not their code."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BUILTINS", "CONFIGURABLE", "NOT_YET", "BuiltinToolset", "builtin"]

BUILTINS: Mapping[str, str] = {
    "filesystem_cwd": "llm_do.toolsets.filesystem:filesystem_cwd",
    "filesystem_cwd_ro": "llm_do.toolsets.filesystem:filesystem_cwd_ro",
    "filesystem_project": "llm_do.toolsets.filesystem:filesystem_project",
    "filesystem_project_ro": "llm_do.toolsets.filesystem:filesystem_project_ro",
}
"""Name to `module:attribute`."""

CONFIGURABLE: Mapping[str, str] = {"filesystem": "llm_do.toolsets.filesystem:configured"}
"""The `type` of a toolset in the manifest to `module:attribute`."""

NOT_YET = frozenset({"shell_readonly", "shell_file_ops", "dynamic_agents", "ask_user", "todo"})
"""Built-ins whose names are reserved but that this version doesn't have."""


@dataclass(frozen=True, slots=True)
class BuiltinToolset:
    """A built-in toolset, not imported yet. The registry holds one for each toolset that the manifest configures.

    Args:
        name: The name it is listed by.
        target: `module:attribute` of the factory.
        config: The manifest's configuration; empty for a built-in that is listed by its own name.
    """

    name: str
    target: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def load(self) -> Any:
        """Import the factory.

        Example:
            >>> BuiltinToolset("join", "os.path:join").load()("a", "b")
            'a/b'
        """
        module, _, attribute = self.target.partition(":")
        return getattr(importlib.import_module(module), attribute)


def builtin(name: str) -> BuiltinToolset | None:
    """The built-in of that name, None when there is none in this version.

    Example:
        >>> builtin("filesystem_cwd").target
        'llm_do.toolsets.filesystem:filesystem_cwd'
    """
    target = BUILTINS.get(name)
    return BuiltinToolset(name, target) if target is not None else None
