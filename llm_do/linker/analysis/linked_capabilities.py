"""Links the capabilities of agents: makes, judges and divides them, and checks what their providers run.

PydanticAI is imported only for projects whose agents have capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, cast

from llm_do.diagnostics.codes import tools as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.analysis.inventory import KnownTool, Origin
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.permissions import permission_for
from llm_do.linker.python.python_files import LoadedFile, run_user_code
from llm_do.project.agent_spec import AgentSpec, CapabilityRef, ServerSideTool
from llm_do.project.flow_spec import every_agent
from llm_do.text.words import with_article

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability

    from llm_do.project.project import Project

__all__ = ["check_provider_tools", "link_capabilities", "provider_tool", "registering_files"]

_PROBLEMS: Mapping[str, Callable[[str, str | None], Problem]] = {
    "unknown": problems.unknown_capability,
    "arguments": problems.invalid_capability,
    "refused": problems.refused_capability,
    "duplicate": problems.duplicate_capability,
}
"""The problem of each kind of `CapabilityError`."""

VARIABLE = "CAPABILITIES"
"""The list of classes that a Python file registers."""


def link_capabilities(
    agents: Sequence[tuple[AgentSpec, Location | None]],
    files: Sequence[LoadedFile],
    names: Names,
    *,
    unread: bool,
) -> Mapping[str, type[Any]]:
    """Give each agent what its capabilities add, and report those that it can't have.

    Args:
        agents: The agents, with where they are declared.
        files: The Python files that were imported.
        names: Where problems are reported.
        unread: Whether Python files weren't imported, so that a name may be theirs.

    Returns:
        The classes that Python files register, by name.
    """
    registering = [file for file in files if VARIABLE in file.namespace]
    using = [(spec, place) for spec, place in agents if spec.capabilities]
    if not registering and not using:
        return {}
    from llm_do.project.capabilities import give_capabilities

    own = _registered(registering, names)
    for spec, place in using:
        with run_user_code():
            faults = give_capabilities(spec, own)
        left = [item for item, fault in faults if fault.kind == "unknown" and (unread or _may_be_broken(item, names))]
        spec.capabilities = (*spec.capabilities, *left)
        for item, fault in faults:
            if item not in left:
                where = item.place if isinstance(item, CapabilityRef) else None
                names.report(_PROBLEMS[fault.kind](fault.message, fault.hint), where or place or Location(""))
    return own


def registering_files(files: Sequence[LoadedFile]) -> set[str]:
    """The labels of the Python files that register capabilities."""
    return {file.label for file in files if VARIABLE in file.namespace}


def _may_be_broken(item: object, names: Names) -> bool:
    return isinstance(item, CapabilityRef) and names.broken.may_have(item.name)


def _registered(files: Sequence[LoadedFile], names: Names) -> dict[str, type[Any]]:
    from pydantic_ai.capabilities import CAPABILITY_TYPES

    found: dict[str, type[Any]] = {}
    for file in files:
        listed: object = file.namespace[VARIABLE]
        if not isinstance(listed, list | tuple):
            names.report(problems.invalid_registration(with_article(type(listed).__name__)), file.place(VARIABLE))
            continue
        for index, item in enumerate(cast("Sequence[object]", listed)):
            place = file.place(VARIABLE, index)
            if not _is_capability(item):
                what = f"the class `{item.__name__}`" if isinstance(item, type) else with_article(type(item).__name__)
                names.report(problems.invalid_registration(what), place)
                continue
            kind = cast("type[AbstractCapability[Any]]", item)
            name = kind.get_serialization_name() or kind.__name__
            if name in CAPABILITY_TYPES or found.get(name, kind) is not kind:
                names.report(problems.registered_twice(name, library=name in CAPABILITY_TYPES), place)
                continue
            found[name] = kind
    return found


def _is_capability(item: object) -> bool:
    from pydantic_ai.capabilities import AbstractCapability

    return isinstance(item, type) and issubclass(item, AbstractCapability) and is_dataclass(cast("object", item))


def provider_tool(tool: ServerSideTool) -> KnownTool:
    """A tool that a provider runs as rules see it."""
    return KnownTool(tool.tool_type, tool.tool_type, Origin(tool.tool_type, None, 0), tool.facts)


def check_provider_tools(project: Project) -> list[Diagnostic]:
    """Report the tools that providers run and that no one allows; what a policy function says is known in a run."""
    return list(_not_allowed(project))


def _not_allowed(project: Project) -> Iterator[Diagnostic]:
    for spec, place in every_agent(project.registry):
        for tool in spec.server_side_tools:
            found = permission_for(provider_tool(tool), spec.name, project.policy, project.settings, agent=spec.name)
            if found.effect == "allow" or (project.policy_function is not None and found.effect == "ask"):
                continue
            problem = problems.provider_tool_without_rule(
                tool.tool_type, spec.name, found.effect, found.decision.reason
            )
            yield problem.at(tool.place or place or Location(""))
