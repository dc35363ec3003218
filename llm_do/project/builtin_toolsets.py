"""The toolsets that every agent can list by name: import paths, and what is known of their tools without them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from llm_do._frozen import frozen

if TYPE_CHECKING:
    from llm_do.policy.values import Effect

__all__ = [
    "BUILTINS",
    "CONFIGURABLE",
    "BuiltinTool",
    "BuiltinToolset",
    "Options",
    "find_builtin",
    "find_option_faults",
    "known_tools",
]

BUILTINS: Mapping[str, str] = {
    "ask_user": "llm_do.toolsets.ask_user:ask_user",
    "dynamic_agents": "llm_do.toolsets.dynamic_agents:dynamic_agents",
    "filesystem_cwd": "llm_do.toolsets.filesystem:filesystem_cwd",
    "filesystem_cwd_ro": "llm_do.toolsets.filesystem:filesystem_cwd_ro",
    "filesystem_project": "llm_do.toolsets.filesystem:filesystem_project",
    "filesystem_project_ro": "llm_do.toolsets.filesystem:filesystem_project_ro",
    "shell_file_ops": "llm_do.toolsets.shell:shell_file_ops",
    "shell_readonly": "llm_do.toolsets.shell:shell_readonly",
    "todo": "llm_do.toolsets.todo:todo",
}
"""Name to `module:attribute`."""

CONFIGURABLE: Mapping[str, str] = {
    "filesystem": "llm_do.toolsets.filesystem:configured",
    "mcp": "llm_do.toolsets.mcp:configured",
    "shell": "llm_do.toolsets.shell:configured",
}
"""The `type` of a toolset in the manifest to `module:attribute`."""


@frozen
class BuiltinTool:
    """What is known of a built-in's tool without importing it; a test compares it with the tool itself.

    Args:
        name: Its name.
        arguments: The names of its arguments.
        primary: Those that a rule's `tool(PATTERN)` matches.
        verdict: What its toolset says of ordinary arguments.
    """

    name: str
    arguments: tuple[str, ...]
    primary: str | tuple[str, ...] | None
    verdict: Effect


_READING = (
    BuiltinTool("read_file", ("path", "offset", "limit", "line_numbers", "max_chars"), "path", "allow"),
    BuiltinTool("list_files", ("path", "pattern"), "path", "allow"),
    BuiltinTool("search_files", ("pattern", "path", "glob"), "path", "allow"),
)
_WRITING = (
    BuiltinTool("write_file", ("path", "content"), "path", "ask"),
    BuiltinTool("edit_file", ("path", "old", "new"), "path", "ask"),
    BuiltinTool("make_directory", ("path",), "path", "ask"),
    BuiltinTool("move_file", ("source", "target"), ("source", "target"), "ask"),
    BuiltinTool("delete_file", ("path",), "path", "ask"),
)
_SHELL = (BuiltinTool("shell", ("command", "timeout", "cwd"), "command", "ask"),)

_TODO = (
    BuiltinTool("todo_add", ("items",), None, "allow"),
    BuiltinTool("todo_update", ("number", "status", "text"), None, "allow"),
    BuiltinTool("todo_list", (), None, "allow"),
)
_AGENTS = (
    BuiltinTool("agent_create", ("name", "instructions", "description", "model", "tools", "toolsets"), "name", "ask"),
    BuiltinTool("agent_call", ("name", "input"), "name", "allow"),
)

_TOOLS: Mapping[str, tuple[BuiltinTool, ...]] = {
    "ask_user": (BuiltinTool("ask_user", ("question", "choices"), None, "allow"),),
    "dynamic_agents": _AGENTS,
    "filesystem_cwd": (*_READING, *_WRITING),
    "filesystem_cwd_ro": _READING,
    "filesystem_project": (*_READING, *_WRITING),
    "filesystem_project_ro": _READING,
    "filesystem": (*_READING, *_WRITING),
    "shell_readonly": _SHELL,
    "shell_file_ops": _SHELL,
    "shell": _SHELL,
    "todo": _TODO,
}
"""Built-in, or the `type` of a configured one, to its tools; those of others are known at run time."""


@frozen
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


def find_builtin(name: str) -> BuiltinToolset | None:
    """The built-in of that name, None when there is none.

    Example:
        >>> find_builtin("filesystem_cwd").target
        'llm_do.toolsets.filesystem:filesystem_cwd'
    """
    target = BUILTINS.get(name)
    return BuiltinToolset(name, target) if target is not None else None


def known_tools(toolset: BuiltinToolset, options: Mapping[str, Any]) -> tuple[BuiltinTool, ...] | None:
    """The tools of a built-in, None when only running it shows them.

    Example:
        >>> [tool.name for tool in known_tools(BuiltinToolset("docs", "", {"type": "filesystem"}), {"read_only": True})]
        ['read_file', 'list_files', 'search_files']
    """
    tools = _TOOLS.get(str(toolset.config.get("type", toolset.name)))
    if tools is _TOOLS["filesystem"] and {**toolset.config, **options}.get("read_only") is True:
        return _READING
    return tools


@frozen
class Options:
    """What options an agent may give a built-in, and what is wrong with those it gives.

    Args:
        known: Their names.
        wrong: Name to what is wrong with the value.
    """

    known: tuple[str, ...]
    wrong: Mapping[str, str]


def find_option_faults(toolset: BuiltinToolset, options: Mapping[str, Any]) -> Options:
    """Check the options an agent gives a built-in: a configured one takes those of its type, others take none.

    Example:
        >>> find_option_faults(BuiltinToolset("docs", "", {"type": "filesystem"}), {"read_only": 1}).wrong
        {'read_only': 'should be a valid boolean'}
    """
    from pydantic import ValidationError

    from llm_do.formats.toolset_config import CONFIG_MODELS, McpConfig, server_faults

    model = CONFIG_MODELS.get(str(toolset.config.get("type")))
    if model is None:
        return Options((), {})
    known = tuple(name for name in model.model_fields if name != "type")
    wrong: dict[str, str] = {}
    given = {name: value for name, value in options.items() if name in known}
    whole = {**{name: value for name, value in toolset.config.items() if value is not None}, **given}
    try:
        model.model_validate(whole)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            wrong.setdefault(str(fault["loc"][0]), fault["msg"].removeprefix("Input ").removeprefix("input "))
    if not wrong and model is McpConfig:
        faults = server_faults(whole)
        wrong = {name: why for name, why in faults.items() if name in given}
        if "url" in faults and "url" not in given and "command" in given:
            wrong["command"] = "excludes `url`: a server has one of them"
    return Options(known, wrong)
