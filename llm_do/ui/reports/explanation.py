"""Why a call is allowed, asked about or denied, out of the `Approver` that decides at run time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import callers_by_name
from llm_do.text.sanitizer import format_arguments, sanitize
from llm_do.text.words import closest_match, did_you_mean
from llm_do.ui.terminal.typed_values import json_or_text

if TYPE_CHECKING:
    from pydantic_ai import ToolDefinition

    from llm_do.policy.values import Decision, ToolCallInfo
    from llm_do.project.agent_spec import ServerSideTool
    from llm_do.project.project import Project
    from llm_do.runtime.tools.approval_requirement import ApprovalRequirement

__all__ = ["explain_data", "explanation_lines"]


def explain_data(
    project: Project, words: Sequence[str], allow: Sequence[str] = (), deny: Sequence[str] = ()
) -> dict[str, Any]:
    """Decide about a call as at run time, without making it."""
    from pydantic_ai import RunContext
    from pydantic_ai.usage import RunUsage

    from llm_do.policy.digest import call_digest
    from llm_do.runtime.approval.pending_call import PendingCall, makers_of
    from llm_do.runtime.context.null_model import NULL_MODEL
    from llm_do.runtime.runtime import Runtime
    from llm_do.runtime.tools.approval_requirement import required_by_wrappers
    from llm_do.runtime.tools.traits import ToolTraits, traits_of

    path, tool, rest = _find_call(project, words)
    traits = traits_of(tool.metadata) or ToolTraits()
    args = _args(rest, tool.parameters_json_schema, traits.facts.primary)
    run = RunContext(deps=None, model=NULL_MODEL, usage=RunUsage(), tool_name=tool.name)
    warnings = _misfits(tool.parameters_json_schema, args)
    call = PendingCall(
        tool_name=tool.name,
        traits=traits,
        read=lambda: args,
        agent=path.rpartition("/")[2],
        path=path,
        depth=path.count("/") + 1,
        makers=makers_of(project, project.registry, path),
        requirement=_before_a_run(required_by_wrappers(traits, run, tool, args)),
        warn=warnings.append,
    )
    approver = Runtime(project, allow=allow, deny=deny).approver
    info = call.info()
    decision = asyncio.run(approver.decide(call, info))
    known = approver.automatic_answer(info, decision, call_digest(info)) if decision.effect == "ask" else None
    return {
        "path": path,
        "tool": info.tool_name,
        "args": args,
        **_decision(decision),
        "answer": _decision(known) if known is not None else None,
        "assertions": _assertions(project, info),
        "warnings": [*map(str, approver.saved.faults), *warnings],
    }


def _misfits(schema: Mapping[str, Any], args: dict[str, Any]) -> list[str]:
    """What is wrong with the arguments; one that is left out may be any."""
    from llm_do.project.tools.argument_schemas import find_schema_faults

    optional = {key: value for key, value in schema.items() if key != "required"}
    faults = "; ".join(find_schema_faults(optional, args))
    before = "the arguments don't fit the tool's schema, so a run may refuse the call before it decides"
    return [f"{before}: {faults}"] if faults else []


def _assertions(project: Project, info: ToolCallInfo) -> list[dict[str, object]]:
    """The assertions that are about a call, with what is known about them."""
    from llm_do.linker.checks.assertion_checks import prove_assertions
    from llm_do.policy.matcher import matches

    patterns = [(declared.assertion.text, declared.assertion.target.pattern) for declared in project.assertions]
    about = {text for text, pattern in patterns if pattern is not None and matches(pattern, info, restrictive=True)}
    return [proof.to_dict() for proof in prove_assertions(project) if proof.text in about] if about else []


def _before_a_run(requirement: ApprovalRequirement | None) -> ApprovalRequirement | None:
    """What is known before a run: a wrapper's function that fails here may know more about a call in a run."""
    from llm_do.policy.values import Decision

    found = requirement() if requirement is not None else None
    if found is not None and found.effect == "deny":
        found = Decision("ask", f"what its toolset requires shows at run time ({found.reason})", required=True)
    return None if found is None else lambda: found


def _decision(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in ("effect", "source", "reason", "rule", "place", "person_only")}


def _find_call(project: Project, words: Sequence[str]) -> tuple[str, ToolDefinition, Sequence[str]]:
    """The call path, the tool, and the words behind it."""
    entry = project.entry.name
    agent = words[0].rpartition("/")[2]
    specs = {name: item for name, item in callers_by_name(project.registry).items() if isinstance(item, AgentSpec)}
    if len(words) > 1 and agent in specs:
        path = words[0] if "/" in words[0] else _path(project, agent)
        return path, _tool(project, specs[agent], words[1]), words[2:]
    name = words[0]
    owners = [owner for owner, spec in specs.items() if name in _tools(project, spec)]
    if not owners:
        seen = {tool for spec in specs.values() for tool in _tools(project, spec)}
        raise UsageError(
            f"no agent of the project has a tool {name!r}{_known_later(project, specs.values())}",
            hint=_near(name, seen),
        )
    owner = entry if entry in owners else owners[0]
    return _path(project, owner), _tool(project, specs[owner], name), words[1:]


def _path(project: Project, agent: str) -> str:
    """The shortest path to an agent; its name where nothing calls it."""
    from llm_do.ui.reports.project_graph import graph_data

    return next((each["path"] for each in graph_data(project)["paths"] if each["agent"] == agent), agent)


def _tools(project: Project, spec: AgentSpec) -> Mapping[str, ToolDefinition]:
    from llm_do.runtime.agents.agent_builder import builder_of

    own = {tool.name: tool for tool in builder_of(project).build(spec).tools}
    return {tool.tool_type: _provider_tool(tool) for tool in spec.server_side_tools} | own


def _provider_tool(tool: ServerSideTool) -> ToolDefinition:
    """A tool that the provider runs: it is decided about when its agent is called, without arguments."""
    from pydantic_ai import ToolDefinition

    from llm_do.runtime.tools.traits import TRAITS_KEY, ToolTraits

    return ToolDefinition(name=tool.tool_type, metadata={TRAITS_KEY: ToolTraits(tool.facts, tool=tool.tool_type)})


def _tool(project: Project, agent: AgentSpec, name: str) -> ToolDefinition:
    tools = _tools(project, agent)
    if name not in tools:
        raise UsageError(
            f"the agent {agent.name!r} has no tool {name!r} that is known before a run",
            hint=_near(name, tools),
        )
    return tools[name]


def _known_later(project: Project, specs: Iterable[AgentSpec]) -> str:
    """Where else a tool may come from: toolsets that say in a run which tools they have."""
    from llm_do.runtime.agents.agent_builder import builder_of

    later = sorted({origin for spec in specs for origin in builder_of(project).build(spec).open})
    return f" that is known before a run; the tools of {', '.join(later)} aren't" if later else ""


def _near(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known) or "`llm-do tools` lists them."


def _args(words: Sequence[str], schema: Mapping[str, Any], primary: str | tuple[str, ...] | None) -> dict[str, Any]:
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            data: object = json.loads(words[0])
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"the arguments are not valid JSON: {error}", hint="""Quote them, as in '{"path": "a.txt"}'."""
            ) from error
        return cast("dict[str, Any]", data)
    pairs = [word.partition("=") for word in words]
    if words and all(equals and name in properties for name, equals, _ in pairs):
        return {name: _value(value, properties[name]) for name, _, value in pairs}
    _check_text(words, pairs, properties)
    required = [name for name in schema.get("required", ()) if name in properties]
    main = primary if isinstance(primary, str) else (required or [*properties])[0] if properties else None
    if not words:
        return {}
    if main is None:
        raise UsageError("the tool takes no arguments", hint="Leave out what follows the tool's name.")
    return {main: _value(" ".join(words), properties.get(main, {}))}


def _check_text(words: Sequence[str], pairs: Sequence[tuple[str, str, str]], properties: Mapping[str, object]) -> None:
    """Refuse words that look like `NAME=VALUE` pairs but aren't all; other words are the main argument's text."""
    named = [bool(equals) and name.isidentifier() for name, equals, _ in pairs]
    if not words or not named[0]:
        return
    names = [name for name, _, _ in pairs]
    likely = not properties.keys().isdisjoint(names) or closest_match(names[0], properties) is not None
    if names[0] not in properties and not (all(named) and likely):
        return  # such as a command that begins with the setting of a variable
    for word, pair, name in zip(words, named, names, strict=True):
        if not pair:
            raise UsageError(f"{word!r} is not NAME=VALUE, as the words before it are", hint="Quote a value's spaces.")
        if name not in properties:
            hint = did_you_mean(name, properties) or f"It takes {', '.join(properties) or 'nothing'}."
            raise UsageError(f"the tool has no argument {name!r}", hint=hint)


def _value(text: str, part: Mapping[str, Any]) -> Any:
    return text if part.get("type") == "string" else json_or_text(text)


def explanation_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """The explanation as text."""
    yield sanitize(f"{data['path']} calls {data['tool']}")
    yield from (f"  {name}: {value}" for name, value in format_arguments(data["args"], lines=False))
    yield from _decision_lines(data)
    answer = data["answer"]
    if answer is not None:
        yield from _decision_lines(answer)
    elif data["effect"] == "ask":
        yield "a person is asked; without one, the call is denied"
    for proof in data["assertions"]:
        known = "is proved" if proof["outcome"] == "holds" else f"can't be proved: {proof['reason']}"
        yield sanitize(f"assertion: {proof['assert']}, which {known}")
    yield from (sanitize(f"warning: {text}") for text in data["warnings"])


def _decision_lines(decision: Mapping[str, Any]) -> Iterator[str]:
    yield sanitize(f"{decision['effect']}: {decision['reason']}")
    if decision["rule"]:
        yield sanitize(f"  rule: {decision['rule']}")
    if decision["place"]:
        yield sanitize(f"  place: {decision['place']}")
