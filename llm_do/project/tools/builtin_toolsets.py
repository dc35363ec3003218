"""The built-in toolsets: their names, and facts about their tools that are known without importing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from llm_do._extensions import ExtensionPoint
from llm_do._startup.frozen import frozen
from llm_do.formats.memory_scopes import MEMORY_SCOPES
from llm_do.formats.server_listings import ListedTool
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Decision

__all__ = [
    "ASK_USER",
    "BUILTINS",
    "BUILTIN_FACTORY",
    "BUILTIN_SHELL",
    "CONFIGURABLE",
    "DYNAMIC_AGENTS",
    "FILES",
    "HTTP",
    "MEMORY",
    "SHELL",
    "SKILLS",
    "TODO",
    "BuiltinToolset",
    "Options",
    "decide_about_memory",
    "find_builtin",
    "find_option_faults",
    "known_tools",
    "memory_facts",
    "memory_scopes",
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


def _shell(*arguments: str) -> Mapping[str, ToolFacts]:
    facts = ToolFacts(
        "toolset",
        ("command", "timeout", "cwd", *arguments),
        "command",
        paths=["cwd"],
        commands=["command"],
        reads=["command"],
        writes=["command"],
        default="ask",
        decides=True,
    )
    return {"shell": facts}


BUILTIN_SHELL = _shell()
SHELL = _shell("outside_sandbox")
"""The tool of shells that the manifest configures."""

HTTP: Mapping[str, ToolFacts] = {
    "http_get": ToolFacts("toolset", ("url",), "url", hosts=["url"], reads=["url"], repeatable=True),
    "http_request": ToolFacts(
        "toolset", ("method", "url", "body", "content_type"), "url", hosts=["url"], reads=["url"], writes=["url"]
    ),
}
"""The tools for requests by HTTP; all that rules, proofs and durable runs know of them is here."""

_OWN_LIST = "it changes nothing but the agent's own list"
TODO: Mapping[str, ToolFacts] = {
    "todo_add": ToolFacts("builtin", ("items",), reason=_OWN_LIST),
    "todo_update": ToolFacts("builtin", ("number", "status", "text"), reason=_OWN_LIST),
    "todo_list": ToolFacts("builtin", (), reason=_OWN_LIST, repeatable=True),
}

DYNAMIC_AGENTS: Mapping[str, ToolFacts] = {
    "agent_create": ToolFacts(
        "toolset",
        ("name", "instructions", "description", "model", "tools", "toolsets", "skills"),
        "name",
        writes=["name"],
    ),
    "agent_call": ToolFacts("agent", ("agent", "input", "attachments"), "agent", reads=["attachments"]),
}

ASK_USER: Mapping[str, ToolFacts] = {
    "ask_user": ToolFacts(
        "builtin", ("question", "choices"), reason="it is a question to a person itself", repeatable=True
    )
}

_OWN_SKILL = "it reads the agent's own skills"
SKILLS: Mapping[str, ToolFacts] = {
    "load_skill": ToolFacts("builtin", ("name",), "name", reason=_OWN_SKILL, repeatable=True),
    "read_skill_file": ToolFacts(
        "builtin",
        ("skill", "path", "offset", "limit"),
        "path",
        paths=["path"],
        reads=["path"],
        reason=_OWN_SKILL,
        repeatable=True,
    ),
}
"""The tools of every agent that has skills."""

_SHARED_MEMORY = "what is remembered for the project reaches all of its runs"
_OWN_MEMORY = "it reaches only runs of the same thread or user"


def _changing_memory(*arguments: str) -> ToolFacts:
    return ToolFacts(
        "toolset", arguments, "scope", writes=["scope"], default="ask", reason=_SHARED_MEMORY, decides=True
    )


MEMORY: Mapping[str, ToolFacts] = {
    "remember": _changing_memory("text", "scope"),
    "recall": ToolFacts(
        "toolset",
        ("query", "scope", "limit"),
        "scope",
        reads=["scope"],
        default="allow",
        reason="it reads what agents remember",
        repeatable=True,
    ),
    "forget": _changing_memory("id", "scope"),
}
"""The tools of a memory; what changes the project's needs approval."""

_UNSHARED_MEMORY = {
    name: replace(facts, default="allow", reason=_OWN_MEMORY, decides=False) if facts.writes else facts
    for name, facts in MEMORY.items()
}

_READ_ONLY_FILES = {name: facts for name, facts in FILES.items() if not facts.writes}

BUILTIN_FACTORY: ExtensionPoint[Callable[[str], Callable[..., Any]]] = ExtensionPoint("builtin_factory")
"""Finds the factory of a built-in by its name, or by the `type` of a configured one."""

BUILTINS: Mapping[str, Mapping[str, ToolFacts]] = {
    "ask_user": ASK_USER,
    "dynamic_agents": DYNAMIC_AGENTS,
    "filesystem_cwd": FILES,
    "filesystem_cwd_ro": _READ_ONLY_FILES,
    "filesystem_project": FILES,
    "filesystem_project_ro": _READ_ONLY_FILES,
    "memory": MEMORY,
    "http": HTTP,
    "shell_file_ops": BUILTIN_SHELL,
    "shell_readonly": BUILTIN_SHELL,
    "skills": SKILLS,
    "todo": TODO,
}
"""The tools of the toolsets that agents list by these names, which projects can't use for toolsets of their own."""

CONFIGURABLE: Mapping[str, Mapping[str, ToolFacts] | None] = {
    "filesystem": FILES,
    "http": HTTP,
    "mcp": None,
    "memory": MEMORY,
    "shell": SHELL,
}
"""The tools of the toolsets that the manifest configures, by their `type`; None if they are only known at run time."""


@frozen
class BuiltinToolset:
    """A built-in toolset that isn't imported yet. The registry has one for each toolset the manifest configures.

    Args:
        name: The name that agents list it by.
        config: The manifest's configuration; empty for a built-in listed by its own name.
        listed: The tools that a server had when it was last asked.
    """

    name: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    listed: Sequence[ListedTool] = ()

    @property
    def kind(self) -> str:
        """The `type` of a configured one, else its name."""
        return str(self.config.get("type", self.name))

    def load(self) -> Callable[..., Any]:
        """Import the factory."""
        return BUILTIN_FACTORY.get()(self.kind)


def find_builtin(name: str) -> BuiltinToolset | None:
    """Return the built-in of that name, or None if there is none.

    Example:
        >>> find_builtin("filesystem_cwd").kind
        'filesystem_cwd'
    """
    if name not in BUILTINS:
        return None
    # One that is also a type can be listed without the manifest, and takes the type's options.
    return BuiltinToolset(name, {"type": name} if name in CONFIGURABLE else {})


def known_tools(toolset: BuiltinToolset, options: Mapping[str, Any]) -> Mapping[str, ToolFacts] | None:
    """Return the tools of a built-in; None if they are only known at run time.

    Example:
        >>> list(known_tools(BuiltinToolset("docs", {"type": "filesystem"}), {"read_only": True}))
        ['read_file', 'list_files', 'search_files']
    """
    tools = (CONFIGURABLE if "type" in toolset.config else BUILTINS).get(toolset.kind)
    if (scopes := memory_scopes(toolset, options)) is not None:
        return memory_facts(scopes)
    return _READ_ONLY_FILES if tools is FILES and {**toolset.config, **options}.get("read_only") is True else tools


def memory_scopes(toolset: BuiltinToolset, options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the scopes of a memory, the narrowest first; None for any other toolset.

    Example:
        >>> memory_scopes(BuiltinToolset("notes", {"type": "memory"}), {"scopes": ["user"]})
        ('user',)
    """
    if toolset.kind != "memory":
        return None
    chosen = {**toolset.config, **options}.get("scopes")
    if not isinstance(chosen, list | tuple):
        return MEMORY_SCOPES
    return tuple(scope for scope in MEMORY_SCOPES if scope in chosen)


def memory_facts(scopes: Sequence[str]) -> Mapping[str, ToolFacts]:
    """Return the facts of the tools of a memory with these scopes."""
    return MEMORY if "project" in scopes else _UNSHARED_MEMORY


def decide_about_memory(facts: ToolFacts, scope: object) -> Decision | None:
    """Return what a memory decides about a change in a scope; None if its default holds.

    Example:
        >>> decide_about_memory(MEMORY["remember"], "user").effect
        'allow'
    """
    changes = bool(facts.writes) and facts in MEMORY.values()
    return Decision("allow", _OWN_MEMORY) if changes and scope in ("thread", "user") else None


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
    """Check the options an agent passes to a built-in: those of its type, if it has one.

    Example:
        >>> find_option_faults(BuiltinToolset("docs", {"type": "filesystem"}), {"read_only": 1}).wrong
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
    if "base_url" in own and "headers" in toolset.config and "headers" not in own:
        wrong["base_url"] = "can't be changed here: the manifest's `headers` are for the manifest's `base_url`"
    if "url" in faults and "url" not in own and "command" in own:
        wrong["command"] = "excludes `url`: a server has one of them"
    return Options(known, wrong)
