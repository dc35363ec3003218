"""Linking one agent late: the text of an `.agent` file against a project's names, with the project's own checks.

Where the text comes from, and what such an agent may have, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.errors import LinkError
from llm_do.linker.analysis.inventory import Inventory, Origin
from llm_do.linker.analysis.linked_capabilities import link_capabilities
from llm_do.linker.analysis.names import Names
from llm_do.linker.checks.agent_checks import check_agent, check_template
from llm_do.linker.checks.tool_checks import check_tool_names
from llm_do.linker.python.python_files import PythonFiles
from llm_do.linker.python.references import References
from llm_do.linker.sources.conversion import AgentSource, agent_spec
from llm_do.linker.sources.skill_folders import find_skills
from llm_do.models.aliases import known_aliases
from llm_do.project.agent_spec import AgentSpec, give_skills
from llm_do.project.registry import Registry

__all__ = ["link_agent"]


def link_agent(
    text: str, path: Path, root: Path, registry: Registry, aliases: Mapping[str, str | Sequence[str]]
) -> AgentSpec:
    """Link the text of an `.agent` file; `aliases` are the project's, of models.

    Example:
        >>> text = "---\\nname: greeter\\n---\\nGreet the person.\\n"
        >>> link_agent(text, Path("made/greeter.agent"), Path("."), Registry(), {}).name
        'greeter'
    """
    from llm_do.formats.agent_file import parse_agent

    label = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    parsed = parse_agent(text, label)
    source = AgentSource(path, label, parsed.value, parsed.node, parsed.body, parsed.body_start, parsed.diagnostics)
    found = list(parsed.diagnostics)
    if parsed.value is None or source.failed:
        raise _error(found)
    names = Names(taken=dict(registry), root=root, aliases=known_aliases(aliases or {}, root))
    references = References(root, PythonFiles(), [])
    spec = agent_spec(source, parsed.value, references)
    place = spec.place or Location(label)
    skills, faults = find_skills(root, parsed.value.skills or ())
    found += faults
    give_skills(spec, skills)
    link_capabilities([(spec, place)], (), names, unread=False)
    check_agent(spec, names, place, source)
    if spec.template:
        check_template(source, spec, names)
    check_tool_names(Inventory(names.taken).of(spec), names, partial(_everywhere, place))
    found += [*names.faults, *references.faults]
    if any(item.severity == "error" for item in found):
        raise _error(found)
    return spec


def _everywhere(place: Location, _: Origin) -> Location:
    return place


def _error(found: list[Diagnostic]) -> LinkError:
    errors = [item for item in found if item.severity == "error"]
    message = "; ".join(f"{item.message}" + (f" ({item.hint})" if item.hint else "") for item in errors[:5])
    return LinkError(message, found)
