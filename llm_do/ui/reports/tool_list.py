"""The tools of agents as their models see them, with schemas; as data, and as lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from llm_do.text.sanitizer import sanitize

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition

    from llm_do.project.project import Project

__all__ = ["tool_lines", "tools_data"]


def tools_data(project: Project, agent: str | None = None) -> dict[str, Any]:
    """The tools that agents' models see, as the agents are built to run."""
    from llm_do.errors import UsageError
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.project.flow_spec import callers_by_name
    from llm_do.text.words import did_you_mean

    specs = [item for item in callers_by_name(project.registry).values() if isinstance(item, AgentSpec)]
    if agent is not None:
        named = [spec for spec in specs if spec.name == agent]
        if not named:
            raise UsageError(
                f"the project has no agent {agent!r}",
                hint=did_you_mean(agent, [spec.name for spec in specs])
                or "`llm-do graph` shows its agents; name another project with --project.",
            )
        specs = named
    return {"agents": [_agent(project, spec) for spec in specs]}


def _agent(project: Project, spec: Any) -> dict[str, Any]:
    from llm_do.project.agent_spec import skills_of
    from llm_do.project.capabilities import capability_names
    from llm_do.runtime.agents.agent_builder import builder_of

    built = builder_of(project).build(spec)
    tools = [_tool(tool, conditional=tool.name in built.conditional) for tool in built.tools]
    output: Any = spec.output_type
    if output is str:
        output = None
    elif not isinstance(output, dict):
        from pydantic import TypeAdapter

        output = TypeAdapter(output).json_schema()
    return {
        "name": spec.name,
        "description": spec.description,
        "tools": tools,
        "open": list(built.open),
        "server_side": [tool.tool_type for tool in spec.server_side_tools],
        "capabilities": capability_names(spec),
        "skills": [skill.describe() for skill in skills_of(spec)],
        "output": output,
    }


def _tool(definition: ToolDefinition, *, conditional: bool) -> dict[str, Any]:
    from llm_do.runtime.tools.traits import traits_of

    traits = traits_of(definition.metadata)
    return {
        "name": definition.name,
        "description": definition.description,
        "kind": traits.facts.kind if traits is not None else "function",
        "toolset": traits.toolset if traits is not None else None,
        "conditional": conditional,
        "parameters": definition.parameters_json_schema,
    }


def tool_lines(
    data: Mapping[str, Any], *, width: int | None = None, unread: Mapping[str, Sequence[str]] | None = None
) -> Iterator[str]:
    """The tools as lines; `unread` has the names that agents list and that aren't known, as nothing was imported."""
    for index, agent in enumerate(data["agents"]):
        if index:
            yield ""
        yield agent["name"]
        unknown = (unread or {}).get(agent["name"], ())
        if not agent["tools"] and not agent["open"] and not agent["server_side"] and not unknown:
            yield "  no tools"
        for tool in agent["tools"]:
            yield from _lines_of(tool, width or 100)
        remembered = {tool["toolset"] for tool in agent["tools"] if tool["kind"] == "mcp"}
        for name in agent["open"]:
            known = "listed as it was last asked" if name in remembered else "only known at run time"
            yield f"  {sanitize(name)}: its tools are {known}"
        yield from (f"  {name}: run by the provider" for name in agent["server_side"])
        yield from (sanitize(f"  {name}: not known, since its file was not imported") for name in unknown)
        yield from (sanitize(f"  {name}: a capability") for name in agent["capabilities"])
        for skill in agent["skills"]:
            yield f"  {skill['name']}: a skill in {sanitize(skill['folder'])}"
            yield from (
                f"      {sanitize(line)}" for line in textwrap.wrap(skill["description"], max((width or 100) - 6, 20))
            )


def _lines_of(tool: Mapping[str, Any], width: int) -> Iterator[str]:
    schema: Mapping[str, Any] = tool["parameters"]
    required = set(schema.get("required", ()))
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    shown = ", ".join(
        f"{name}: {type_text(part, schema)}" + ("" if name in required else _default(part))
        for name, part in properties.items()
    )
    source = f"  [{tool['toolset'] or tool['kind']}{', shown if the run allows it' if tool['conditional'] else ''}]"
    yield sanitize(f"  {tool['name']}({shown}){source}")
    first = _summary(tool["description"] or "").partition("\n\n")[0]
    for line in textwrap.wrap(" ".join(first.split()), max(width - 6, 20)):
        yield f"      {sanitize(line)}"
    for name, part in properties.items():
        if part.get("description"):
            yield sanitize(f"      {name}: {' '.join(str(part['description']).split())}")


def _summary(description: str) -> str:
    """A description without the tags in which PydanticAI puts it if its docstring says what is returned."""
    text = description.strip()
    head, end, _ = text.rpartition("</summary>\n<returns>")
    return head.removeprefix("<summary>").strip() if end else text


def _default(part: Mapping[str, Any]) -> str:
    import json

    return f" = {json.dumps(part['default'], ensure_ascii=False)}" if "default" in part else " = ..."


def type_text(part: Any, root: Mapping[str, Any]) -> str:
    """A JSON Schema's type in a few characters.

    Example:
        >>> type_text({"type": "array", "items": {"type": "integer"}}, {})
        'list of integer'
    """
    if not isinstance(part, dict):
        return "any"
    schema = cast("dict[str, Any]", part)
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return " | ".join(repr(value) for value in schema.get("enum", [schema.get("const")]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_text(choice, root) for choice in schema[key]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_text(schema.get('items'), root)}"
    return " | ".join(map(str, cast("list[object]", kind))) if isinstance(kind, list) else str(kind)
