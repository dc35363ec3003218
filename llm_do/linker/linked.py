"""`Linked`: what the linker's steps know of the project's names, and what they add to it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from llm_do.linker.analysis.broken_files import broken_names
from llm_do.linker.analysis.inventory import AgentTools, Inventory, KnownTool
from llm_do.linker.analysis.linked_capabilities import provider_tool
from llm_do.linker.analysis.names import Names
from llm_do.linker.analysis.rule_subjects import Subjects
from llm_do.linker.python.exports import Export
from llm_do.linker.python.python_files import PythonFiles
from llm_do.linker.python.references import References
from llm_do.linker.sources.conversion import AgentSource
from llm_do.linker.sources.new_code import read_new_code
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.linker.sources.skill_folders import LinkedSkills
from llm_do.models.aliases import known_aliases
from llm_do.models.providers.env_files import ENV_FILE, read_variables, with_variables
from llm_do.project.flow_spec import every_agent, listed_names

__all__ = ["Linked"]


@dataclass(slots=True)
class Linked:
    """What is known while names are being resolved."""

    files: ProjectFiles
    python: PythonFiles
    names: Names = field(init=False)
    references: References = field(init=False)
    inventory: Inventory = field(init=False)
    capabilities: Mapping[str, type[Any]] = field(default_factory=dict[str, type[Any]])
    skills: LinkedSkills = field(default_factory=LinkedSkills)
    owners: dict[str, AgentSource] = field(default_factory=dict[str, AgentSource])
    exports: list[Export] = field(default_factory=list[Export])
    tools: dict[str, AgentTools] = field(default_factory=dict[str, AgentTools])

    def __post_init__(self) -> None:
        manifest = self.files.manifest
        dollars = manifest is not None and manifest.runtime.budget.cost_usd is not None
        aliases = known_aliases(manifest.models if manifest is not None else {}, self.files.root)
        aliases = dict.fromkeys(self.files.refused("models"), ()) | aliases
        broken = broken_names(self.files, self.python)
        variables = cache(partial(_variables, self.files))
        if self.files.located.env_file is not None:
            variables()  # a person has named it, so it has to be there whether it is needed or not
        self.names = Names(broken, root=self.files.root, dollars=dollars, aliases=aliases, variables=variables)
        self.names.refused |= self.files.refused("toolsets") | self.files.refused("flows")
        patterns = manifest.python_files if manifest is not None else []
        self.references = References(self.files.root, self.python, self.files.python_labels, patterns)
        self.inventory = Inventory(self.names.taken)

    @property
    def subjects(self) -> Subjects:
        """What rules may name; an agent whose own file has an error may have any tool."""
        known: dict[str, Sequence[KnownTool]] = {name: found.tools for name, found in self.tools.items()}
        for spec, _ in every_agent(self.names.taken):
            if spec.server_side_tools:
                known[spec.name] = (*known.get(spec.name, ()), *map(provider_tool, spec.server_side_tools))
        open_ = {name for name, found in self.tools.items() if found.open}
        any_tool: set[str] = set()
        for spec, _ in every_agent(self.names.taken) if self.names.refused else ():
            if self.names.refused.intersection(listed_names(spec)):
                open_.add(spec.name)
                any_tool.add(spec.name)
        faults = [*self.files.diagnostics, *self.names.faults, *self.references.faults]
        faulty = {item.place.file for item in faults if item.severity == "error"}
        for source in self.files.agents:
            if source.label in faulty:
                open_.update(source.names)
                any_tool.update(source.names)
                known |= {name: () for name in source.names if name not in known}
        origins = {name: found.open for name, found in self.tools.items() if found.open and name not in any_tool}
        return Subjects(known, open_, origins)


def _variables(files: ProjectFiles) -> Mapping[str, str]:
    """What a run would look up: the environment, then the files that count. Nothing but their names matters here."""
    located = files.located
    folder = located.env_folder or located.root
    new_code = files.new_code if located.env_folder is None else read_new_code(folder)
    own = None if new_code.leaves_out(folder / ENV_FILE) else folder
    return with_variables(os.environ, read_variables(own, located.env_file))
