"""The text of an `.agent` file, as a person would write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from llm_do._startup.frozen import frozen
from llm_do.formats.agent_file import parse_agent
from llm_do.formats.syntax.yaml_nodes import plain_scalar
from llm_do.importing.frontmatter import UnreadableFileError
from llm_do.importing.translation import Draft
from llm_do.project.tools.builtin_toolsets import BUILTINS, FILES

__all__ = ["Available", "agent_text", "toolsets_of"]

_PLAIN = re.compile(r"[A-Za-z](?:[\w ,.;()/'’“”…—–&+*?!-]*[\w.)?!'’”…])?")
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_READ_ONLY = frozenset(name for name, facts in FILES.items() if not facts.writes)


@frozen
class Available:
    """What there is in a project for its agents to use.

    Args:
        shell: The toolset that has `shell`.
        agents: The names of agents in the project by the names that their writers gave them.
        servers: The toolsets that are MCP servers.
        models: The aliases of models.
        skills: The folders of skills in the project by the names that their writers gave them.
    """

    shell: str
    agents: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    skills: Mapping[str, str] = field(default_factory=dict[str, str])


def agent_text(draft: Draft, name: str, available: Available) -> str:
    r"""Write an agent.

    Args:
        draft: The agent.
        name: Its name in the project.
        available: What it may use there.

    Raises:
        UnreadableFileError: It has characters that no agent file may have.

    Example:
        >>> from llm_do.importing.translation import translate
        >>> draft = translate("---\nname: a\ndescription: Use it: always\ntools: Read\n---\nHelp.", "a.md")
        >>> print(agent_text(draft, "a", Available("commands")), end="")
        ---
        name: a
        description: "Use it: always"
        toolsets:
          filesystem_project_ro: {include: [read_file]}
        ---
        Help.
    """
    lines = [f"name: {_scalar(name)}"]
    if draft.description:
        lines.append(f"description: {_prose(draft.description)}")
    model = draft.alias if draft.alias in available.models else draft.model
    if model is not None:
        lines.append(f"model: {_scalar(model)}")
    if draft.thinking is not None:
        lines.append(f"model_settings: {{thinking: {draft.thinking}}}")
    lines += _toolset_lines(toolsets_of(draft, available))
    if "web_search" in draft.granted.others:
        lines += ["server_side_tools:", "  - tool_type: web_search"]
    if available.skills and draft.skills is not None:
        folders = dict.fromkeys(available.skills[name] for name in draft.skills if name in available.skills)
        lines.append(f"skills: [{', '.join(map(_scalar, folders))}]")
    if draft.max_steps is not None:
        lines.append(f"max_steps: {draft.max_steps}")
    body = f"{draft.instructions}\n" if draft.instructions else ""
    text = "\n".join(["---", *lines, "---", body])
    _verify(text, draft)
    return text


def toolsets_of(draft: Draft, available: Available) -> dict[str, Sequence[str]]:
    """The toolsets of an agent, each with the tools to include; all of them if there are none."""
    found: dict[str, Sequence[str]] = {}
    files = draft.granted.files & _READ_ONLY if draft.read_only else draft.granted.files
    if files:
        toolset = "filesystem_project_ro" if files <= _READ_ONLY else "filesystem_project"
        offered = BUILTINS[toolset]
        found[toolset] = () if files == frozenset(offered) else [tool for tool in offered if tool in files]
    if "shell" in draft.granted.others:
        found["shell_readonly" if draft.read_only else available.shell] = ()
    if "http" in draft.granted.others:
        found["http"] = ["http_get"]
    found |= {name: () for name in ("todo", "ask_user") if name in draft.granted.others}
    for server in dict.fromkeys(server for server, _ in draft.granted.servers if server in available.servers):
        tools = [tool for name, tool in draft.granted.servers if name == server]
        found[server] = () if "*" in tools else tools
    found |= {available.agents[name]: () for name in draft.granted.agents if name in available.agents}
    return found


def _toolset_lines(toolsets: Mapping[str, Sequence[str]]) -> list[str]:
    if not toolsets:
        return []
    if not any(toolsets.values()):
        return [f"toolsets: [{', '.join(map(_scalar, toolsets))}]"]
    shown = {
        name: f"{{include: [{', '.join(map(_scalar, tools))}]}}" if tools else "{}" for name, tools in toolsets.items()
    }
    return ["toolsets:", *(f"  {_scalar(name)}: {options}" for name, options in shown.items())]


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and plain_scalar(text) == text:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _prose(text: str) -> str:
    """A text of one line or several; those that YAML would read differently are quoted."""
    lines = text.split("\n")
    readable = not _INVISIBLE.search(text.replace("\n", ""))
    if len(lines) > 1 and readable and text == text.strip() and all(line == line.rstrip() for line in lines):
        return "|-\n" + "\n".join(f"  {line}" if line else "" for line in lines)
    return _scalar(text)


def _verify(text: str, draft: Draft) -> None:
    """Make sure that the file says what it should, whatever was in the texts."""
    parsed = parse_agent(text, "agent")
    errors = [item.message for item in parsed.diagnostics if item.severity == "error"]
    if errors:
        raise UnreadableFileError(f"can't be written as an agent: {errors[0]}")
    if (
        parsed.value is None
        or (parsed.value.description or "") != draft.description
        or parsed.body != draft.instructions
    ):
        raise UnreadableFileError("has characters that an agent file can't have")
