"""The built-in toolsets: their import paths, and facts about their tools that are known without importing them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.policy.tool_facts import ToolFacts

__all__ = [
    "ASK_USER",
    "BUILTINS",
    "CONFIGURABLE",
    "DYNAMIC_AGENTS",
    "FILES",
    "SHELL",
    "TODO",
    "BuiltinToolset",
    "Options",
    "Shipped",
    "find_builtin",
    "find_option_faults",
    "known_tools",
]


def _reading(*arguments: str) -> ToolFacts:
    return ToolFacts(
        "toolset", arguments, "path", paths=["path"], reads=["path"], default="allow", decides=True, repeatable=True
    )


def _writing(*arguments: str) -> ToolFacts:
    paths = [name for name in arguments if name in ("path", "source", "target")]
    primary = paths[0] if len(paths) == 1 else tuple(paths)
    return ToolFacts("toolset", arguments, primary, paths=paths, writes=paths, default="ask", decides=True)


FILES: Mapping[str, ToolFacts] = {
    "read_file": _reading("path", "offset", "limit", "line_numbers", "max_chars"),
    "list_files": _reading("path", "pattern"),
    "search_files": _reading("pattern", "path", "glob"),
    "write_file": _writing("path", "content"),
    "edit_file": _writing("path", "old", "new"),
    "make_directory": _writing("path"),
    "move_file": _writing("source", "target"),
    "delete_file": _writing("path"),
}
"""The tools of file toolsets; read-only ones have those that don't write."""

SHELL: Mapping[str, ToolFacts] = {
    "shell": ToolFacts(
        "toolset",
        ("command", "timeout", "cwd"),
        "command",
        paths=["cwd"],
        commands=["command"],
        reads=["command"],
        writes=["command"],
        default="ask",
        decides=True,
    )
}

_OWN_LIST = "it changes nothing but the agent's own list"
TODO: Mapping[str, ToolFacts] = {
    "todo_add": ToolFacts("builtin", ("items",), reason=_OWN_LIST),
    "todo_update": ToolFacts("builtin", ("number", "status", "text"), reason=_OWN_LIST),
    "todo_list": ToolFacts("builtin", (), reason=_OWN_LIST, repeatable=True),
}

DYNAMIC_AGENTS: Mapping[str, ToolFacts] = {
    "agent_create": ToolFacts(
        "toolset",
        ("name", "instructions", "description", "model", "tools", "toolsets"),
        "name",
        writes=["name"],
    ),
    "agent_call": ToolFacts("agent", ("name", "input"), "name"),
}

ASK_USER: Mapping[str, ToolFacts] = {
    "ask_user": ToolFacts("builtin", ("question", "choices"), reason="it is a question to a person itself")
}

_READ_ONLY_FILES = {name: facts for name, facts in FILES.items() if not facts.writes}


@frozen
class Shipped:
    """A toolset that comes with llm-do, as far as it is known without importing it.

    Args:
        target: `module:attribute` of the factory.
        tools: Its tools; None if they are only known at run time.
    """

    target: str
    tools: Mapping[str, ToolFacts] | None


BUILTINS: Mapping[str, Shipped] = {
    "ask_user": Shipped("llm_do.toolsets.ask_user:ask_user", ASK_USER),
    "dynamic_agents": Shipped("llm_do.toolsets.dynamic_agents:dynamic_agents", DYNAMIC_AGENTS),
    "filesystem_cwd": Shipped("llm_do.toolsets.filesystem:filesystem_cwd", FILES),
    "filesystem_cwd_ro": Shipped("llm_do.toolsets.filesystem:filesystem_cwd_ro", _READ_ONLY_FILES),
    "filesystem_project": Shipped("llm_do.toolsets.filesystem:filesystem_project", FILES),
    "filesystem_project_ro": Shipped("llm_do.toolsets.filesystem:filesystem_project_ro", _READ_ONLY_FILES),
    "shell_file_ops": Shipped("llm_do.toolsets.shell:shell_file_ops", SHELL),
    "shell_readonly": Shipped("llm_do.toolsets.shell:shell_readonly", SHELL),
    "todo": Shipped("llm_do.toolsets.todo:todo", TODO),
}
"""The toolsets that agents list by these names, which projects can't use for toolsets of their own."""

CONFIGURABLE: Mapping[str, Shipped] = {
    "filesystem": Shipped("llm_do.toolsets.filesystem:configured", FILES),
    "mcp": Shipped("llm_do.toolsets.mcp:configured", None),
    "shell": Shipped("llm_do.toolsets.shell:configured", SHELL),
}
"""The toolsets that the manifest configures, by their `type`."""


@frozen
class BuiltinToolset:
    """A built-in toolset that isn't imported yet. The registry has one for each toolset the manifest configures.

    Args:
        name: The name that agents list it by.
        target: `module:attribute` of the factory.
        config: The manifest's configuration; empty for a built-in listed by its own name.
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
    """Return the built-in of that name, or None if there is none.

    Example:
        >>> find_builtin("filesystem_cwd").target
        'llm_do.toolsets.filesystem:filesystem_cwd'
    """
    shipped = BUILTINS.get(name)
    return BuiltinToolset(name, shipped.target) if shipped is not None else None


def known_tools(toolset: BuiltinToolset, options: Mapping[str, Any]) -> Mapping[str, ToolFacts] | None:
    """Return the tools of a built-in; None if they are only known at run time.

    Example:
        >>> list(known_tools(BuiltinToolset("docs", "", {"type": "filesystem"}), {"read_only": True}))
        ['read_file', 'list_files', 'search_files']
    """
    kind = toolset.config.get("type")
    shipped = BUILTINS.get(toolset.name) if kind is None else CONFIGURABLE.get(str(kind))
    tools = shipped.tools if shipped is not None else None
    return _READ_ONLY_FILES if tools is FILES and {**toolset.config, **options}.get("read_only") is True else tools


@frozen
class Options:
    """The result of checking the options that an agent passes to a built-in.

    Args:
        known: The names of the options that the built-in accepts.
        wrong: The faults of the values, by option name.
    """

    known: tuple[str, ...]
    wrong: Mapping[str, str]


def find_option_faults(toolset: BuiltinToolset, options: Mapping[str, Any]) -> Options:
    """Check the options an agent passes to a built-in: a configured one takes those of its type, others take none.

    Example:
        >>> find_option_faults(BuiltinToolset("docs", "", {"type": "filesystem"}), {"read_only": 1}).wrong
        {'read_only': 'should be a valid boolean'}
    """
    from llm_do.formats.toolset_config import CONFIG_MODELS, option_faults

    model = CONFIG_MODELS.get(str(toolset.config.get("type")))
    if model is None:
        return Options((), {})
    known = tuple(name for name in model.model_fields if name != "type")
    own = {name: value for name, value in options.items() if name in known}
    faults = option_faults({**toolset.config, **own})
    wrong = {name: reason for name, reason in faults.items() if name in own}
    if "url" in faults and "url" not in own and "command" in own:
        wrong["command"] = "excludes `url`: a server has one of them"
    return Options(known, wrong)
