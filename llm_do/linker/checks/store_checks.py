"""Check `threads.store`: its kind, the variables of a URL, what it needs, and whether it keeps what agents remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._extras import has_extra, missing_extra
from llm_do.diagnostics.codes import environment, shape
from llm_do.diagnostics.codes.tools import unkept_memory
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.variables import stray_reference
from llm_do.linker.analysis.names import Names
from llm_do.project.agent_spec import ToolsetRef
from llm_do.project.flow_spec import every_agent
from llm_do.project.store_location import is_database, is_own_file, variables
from llm_do.project.tools.builtin_toolsets import BuiltinToolset, find_builtin

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["check_memories", "check_store"]


def check_store(store: str, place: Location, names: Names) -> None:
    """Check a project's store, without opening it."""
    if is_own_file(store):
        return
    if not is_database(store):
        names.report(shape.unsupported_store(store), place)
        return
    missing = [variable for variable in variables(store) if not names.variables().get(variable)]
    for variable in missing:
        names.report(environment.missing_variable(variable), place)
    if (stray := stray_reference(store)) is not None:
        names.report(environment.stray_reference(stray), place)
    if not has_extra("postgres"):
        names.report(shape.missing_driver(*missing_extra("postgres", "a store in PostgreSQL")), place)


def check_memories(project: Project) -> list[Diagnostic]:
    """Warn of agents that remember things for later runs in a project whose store doesn't keep them."""
    ends = project.threads.store == "memory"
    if project.record and not ends:
        return []
    found: list[Diagnostic] = []
    for spec, place in every_agent(project.registry):
        for item in spec.toolsets:
            ref = ToolsetRef(item) if isinstance(item, str) else item
            if isinstance(ref, ToolsetRef) and _is_memory(project, ref):
                where = ref.place or spec.place or place or Location("project.json")
                found.append(unkept_memory(spec.name, ref.name, ends=ends).at(where))
    return found


def _is_memory(project: Project, ref: ToolsetRef) -> bool:
    registered = project.registry.get(ref.name)
    toolset = ref.value or (registered.value if registered is not None else find_builtin(ref.name))
    return isinstance(toolset, BuiltinToolset) and toolset.kind == "memory"
