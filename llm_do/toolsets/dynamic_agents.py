"""Agents that an agent creates: `agent_create` writes and links an `.agent` file, `agent_call` calls a created agent.

A created agent can have no more permissions than its creator: the same tools and toolsets, with the same options.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import yaml
from pydantic import AliasChoices, Field
from pydantic_ai import FunctionToolset, RunContext

from llm_do.concurrency.event_loops import PerLoop
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import LinkError, ToolError
from llm_do.files.paths import display_path, fold_name
from llm_do.files.root import Root
from llm_do.files.unreviewed import record
from llm_do.linker.generated_agents import link_agent
from llm_do.models.providers.model_names import split_name
from llm_do.project.agent_spec import SKILLS, AgentSpec, ToolsetRef, skills_of
from llm_do.project.registry import NAME_PATTERN
from llm_do.project.tools.builtin_toolsets import BUILTINS, DYNAMIC_AGENTS
from llm_do.runtime.call.attached_files import attached_files
from llm_do.runtime.context.call_context import CallContext, current_call
from llm_do.runtime.context.session import Session
from llm_do.runtime.tools.traits import BuiltinContext, ToolTraits
from llm_do.text.output_text import output_text
from llm_do.toolsets.function_tools import function_tool

__all__ = ["agent_file_text", "dynamic_agents"]

_CREATING = PerLoop(asyncio.Lock)
"""Agents are created one at a time, so that the file and the agent with one name always match."""


def dynamic_agents(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Build the toolset for creating agents: `agent_create` writes one, `agent_call` calls it.

    Example:
        >>> from pathlib import Path
        >>> list(dynamic_agents(BuiltinContext("dynamic_agents", Path("."), Path("."))).tools)
        ['agent_create', 'agent_call']
    """
    create = ToolTraits(
        DYNAMIC_AGENTS["agent_create"],
        ctx.name,
        "agent_create",
        describe=_describe,
        restore=_register_again,
        undoable=True,
    )
    facts = DYNAMIC_AGENTS["agent_call"]
    call = ToolTraits(
        facts, ctx.name, "agent_call", restrict=partial(attached_files, facts), check=_check_before_asking
    )
    return FunctionToolset([function_tool(agent_create, create), function_tool(agent_call, call)], id=ctx.name)


async def agent_create(
    ctx: RunContext[CallContext],
    name: str,
    instructions: str,
    description: str | None = None,
    model: str | None = None,
    tools: list[str] | None = None,
    toolsets: list[str] | None = None,
    skills: list[str] | None = None,
) -> str:
    """Create an agent that agent_call can call from now on; using the same name again replaces it.

    Args:
        name: Its name: letters, digits, _ and -, the first a letter or _.
        instructions: Its instructions, which apply to every call.
        description: What it does, in a sentence.
        model: The model it uses, one that the project names; the default model if omitted.
        tools: Names of your own tools that it may use.
        toolsets: Names of your own toolsets and agents that it may use.
        skills: Names of your own skills that it may load.
    """
    call = ctx.deps
    path, text = _agent_file(call, name, instructions, description, model, tools or (), toolsets or (), skills or ())
    runtime, project = call.runtime, call.project
    where = path.relative_to(project.root).as_posix()
    async with _CREATING.get():
        taken = runtime.registry.get(name)
        if taken is not None and not (taken.kind == "agent" and project.is_generated(taken.value)):
            raise ToolError(f"{name!r} is already the name of the project's own {taken.kind}; choose another name")
        if taken is None:
            _check_distinct(name, [*runtime.registry, *(file.stem for file in path.parent.glob("*.agent"))])
        try:
            spec = link_agent(text, path, project.root, runtime.registry, project.model_aliases)
        except LinkError as error:
            raise ToolError(f"the agent can't be created: {error.message}") from error
        await run_in_worker(Root(project.root).write, where, text.encode())
        if ctx.tool_call_id not in call.frame.approvals.by_person:
            # It can be called from now on; but the next link takes it for the project's own only once a person agreed.
            await run_in_worker(record, project.root, {where: "agent_create"})
        runtime.register_agents({name: spec})
    return f"{'Replaced' if taken is not None else 'Created'} the agent {name}; it is in {where}"


def _register_again(call: CallContext, args: Mapping[str, Any]) -> None:
    """Register the agent of a call that is replayed; its file is there already."""
    path, text = _agent_file(
        call,
        args["name"],
        args["instructions"],
        args.get("description"),
        args.get("model"),
        args.get("tools") or (),
        args.get("toolsets") or (),
        args.get("skills") or (),
    )
    project = call.project
    spec = link_agent(text, path, project.root, call.runtime.registry, project.model_aliases)
    call.runtime.register_agents({args["name"]: spec})


def _agent_file(
    call: CallContext,
    name: str,
    instructions: str,
    description: str | None,
    model: str | None,
    tools: Sequence[str],
    toolsets: Sequence[str],
    skills: Sequence[str],
) -> tuple[Path, str]:
    """The path and the text of a created agent's file; raises `ToolError` for what its creator may not give it."""
    runtime, project, creator = call.runtime, call.project, _creator(call)
    folder = project.generated_agents_dir
    if folder is None:
        raise ToolError("agents can't be created here: the project has no `generated_agents_dir`")
    _check_name(name)
    if model is not None:
        _check_model(model, _named_models(runtime))
    if creator.states and (tools or toolsets):
        raise ToolError("your tools depend on your states, so you can't pass them to another agent")
    refs = [_own_toolset(creator, each) for each in toolsets]
    for tool in tools:
        if tool not in creator.tools:
            raise ToolError(f"you have no tool {tool!r} to pass on. {_own('tools', [*map(str, creator.tools)])}")
    folders = _own_skills(creator, skills)
    # Without a list it would have the project's skills, which may be more than its creator's.
    listed = folders if folders or project.skills else None
    return folder / f"{name}.agent", agent_file_text(name, instructions, description, model, tools, refs, listed)


def _check_name(name: str) -> None:
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise ToolError(
            f"{name!r} can't be an agent's name: use 1 to 64 letters, digits, _ and -, starting with a letter or _"
        )
    if name in BUILTINS:
        raise ToolError(f"{name!r} is the name of a built-in toolset; choose another name")


def _check_distinct(name: str, taken: Iterable[str]) -> None:
    """Raise `ToolError` for a name that people, or a file system, take for another one."""
    for other in taken:
        if other != name and fold_name(other) == fold_name(name):
            raise ToolError(f"{name!r} differs from the name {other!r} by its case only; choose another name")


def _named_models(session: Session) -> list[str]:
    """Return the models that a created agent may have: those that the project or the caller of the session names.

    A scripted model isn't among them, whoever names it: its name is that of a file, which the model would get to read.
    """
    project, config = session.project, session.config
    chosen: list[object] = [project.model, project.threads.config.model, config.model, *config.models.values()]
    chosen += [spec.model for spec in session.registry.agents() if not project.is_generated(spec)]
    names: list[str] = []
    for choice in chosen:
        if isinstance(choice, str):
            names.append(choice)
        elif isinstance(choice, Sequence):
            names += [name for name in cast("Sequence[object]", choice) if isinstance(name, str)]
    return [name for name in dict.fromkeys(names) if split_name(name)[0] != "script"]


def _check_model(model: str, named: Sequence[str]) -> None:
    if model not in named:
        known = f"choose one of these: {', '.join(named)}" if named else "leave it out"
        raise ToolError(f"the project names no model {display_path(model, 80)!r} that you could choose; {known}")


Called = Annotated[str, Field(validation_alias=AliasChoices("agent", "name"))]
"""The agent to call; before, the parameter was called `name`."""


async def agent_call(
    ctx: RunContext[CallContext], agent: Called, input: str, attachments: list[str] | None = None
) -> str:
    """Call an agent that agent_create has created, and get its answer.

    Args:
        agent: Its name.
        input: The input for the agent.
        attachments: Paths of files in the project to attach.
    """
    call, name = ctx.deps, agent
    _check_call(call, name)
    fields = {"input": input, "attachments": attachments} if attachments else {"input": input}
    return output_text(await call.call(name, fields))


def _check_call(call: CallContext, name: str) -> None:
    """Raise `ToolError` if there is no such agent, or if it may do more than its caller."""
    spec = call.runtime.registry.agent(name)
    if spec is None or not call.project.is_generated(spec):
        created = sorted(each.name for each in call.runtime.registry.agents() if call.project.is_generated(each))
        known = f"Created agents: {', '.join(created)}." if created else "Create it with agent_create first."
        raise ToolError(f"no created agent is called {name!r}. {known}")
    _check_within(spec, _creator(call))


def _check_before_asking(args: Mapping[str, Any]) -> None:
    """The same before a person is asked, unless the agent may be created until then."""
    call = current_call()
    if not any(each.tool_name.endswith("agent_create") for each in call.frame.open_calls.values()):
        _check_call(call, str(args.get("agent", args.get("name"))))


def agent_file_text(
    name: str,
    instructions: str,
    description: str | None,
    model: str | None,
    tools: Sequence[str],
    toolsets: Sequence[ToolsetRef],
    skills: Sequence[str] | None = None,
) -> str:
    """Return the text of an `.agent` file.

    Args:
        name: The agent's name.
        instructions: Its instructions.
        description: Its description.
        model: Its model.
        tools: Names of tools.
        toolsets: Toolsets with their prefixes, globs and options.
        skills: Folders of skills; None to leave the list out.

    Returns:
        The text; it parses back to these values.

    Example:
        >>> print(agent_file_text("critic", "Judge.", "Judges: well.", None, [], [ToolsetRef("docs", "d")]), end="")
        ---
        "name": "critic"
        "description": "Judges: well."
        "toolsets":
          "docs":
            "prefix": "d"
        ---
        Judge.
    """
    head: dict[str, object] = {"name": name}
    if description is not None:
        head["description"] = description
    if model is not None:
        head["model"] = model
    if tools:
        head["tools"] = list(tools)
    if toolsets:
        head["toolsets"] = {ref.name: _toolset_options(ref) for ref in toolsets}
    if skills is not None:
        head["skills"] = list(skills)
    # Everything is quoted: YAML parsers disagree about bare words.
    written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=10_000, default_style='"')
    return f"---\n{written}---\n{instructions.rstrip()}\n"


def _toolset_options(ref: ToolsetRef) -> dict[str, object]:
    options = {"prefix": ref.prefix, "include": list(ref.include), "exclude": list(ref.exclude), **ref.options}
    return {key: value for key, value in options.items() if value not in (None, [])}


def _creator(call: CallContext) -> AgentSpec:
    creator = call.frame.config.agent
    if creator is None:
        raise ToolError("only an agent can create and call agents")
    return creator


def _toolsets(spec: AgentSpec) -> dict[str, ToolsetRef]:
    """Return the toolsets that an agent lists by name; those passed as objects have no name to pass on."""
    found: dict[str, ToolsetRef] = {}
    for item in spec.toolsets:
        if isinstance(item, str):
            found[item] = ToolsetRef(item)
        elif isinstance(item, ToolsetRef) and item.value is None:
            found.setdefault(item.name, item)
    return found


def _own_skills(creator: AgentSpec, names: Sequence[str]) -> list[str]:
    """Return the folders of a creator's skills."""
    own = {skill.name: skill.folder for skill in skills_of(creator)}
    for name in names:
        if name not in own:
            raise ToolError(f"you have no skill {display_path(name, 80)!r} to pass on. {_own('skills', list(own))}")
    return [own[name] for name in dict.fromkeys(names)]


def _own_toolset(creator: AgentSpec, name: str) -> ToolsetRef:
    own = _toolsets(creator)
    if name not in own:
        raise ToolError(f"you have no toolset {name!r} to pass on. {_own('toolsets', list(own))}")
    return own[name]


def _own(what: str, names: Sequence[str]) -> str:
    return f"Your {what}: {', '.join(names)}." if names else f"You have no {what}."


def _check_within(spec: AgentSpec, caller: AgentSpec) -> None:
    """Raise `ToolError` if an agent has more permissions than its caller, who may not be its creator."""
    own = {name: _toolset_options(ref) for name, ref in _toolsets(caller).items()}
    tools = [each for each in spec.tools if each not in caller.tools]
    # What its skills may be is compared one by one, whatever prefix their tools have.
    toolsets = [
        name for name, ref in _toolsets(spec).items() if name != SKILLS and own.get(name) != _toolset_options(ref)
    ]
    folders = {skill.folder for skill in skills_of(caller)}
    skills = [skill.name for skill in skills_of(spec) if skill.folder not in folders]
    if tools or toolsets or skills:
        lacking = ", ".join(map(str, [*tools, *toolsets, *skills]))
        raise ToolError(f"{spec.name} has permissions that you don't have: {lacking}")


def _describe(args: Mapping[str, Any]) -> str:
    extras = [f"{key} {', '.join(map(str, args[key]))}" for key in ("tools", "toolsets", "skills") if args.get(key)]
    return f"Create the agent {display_path(str(args.get('name', '')))}" + (
        f", with {' and '.join(extras)}" if extras else ""
    )
