"""`Skill`: instructions for one kind of task, in a folder of their own, that an agent loads when it needs them.

The linker finds and reads skills. What they say is data: it grants nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from llm_do._extensions import ExtensionPoint
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic, Location

__all__ = ["Skill"]


@frozen
class Skill:
    """A skill in the Agent Skills format: a folder with a `SKILL.md`.

    Args:
        name: Its name, which is also that of its folder.
        description: What it does and when to use it, for models.
        body: The instructions in its `SKILL.md`.
        folder: Its folder, as a path relative to the project's.
        path: Where its files are read, absolute.
        files: Its files that can be read, as paths relative to its folder.
        license: The license that it names.
        compatibility: What it says it needs.
        metadata: Anything else that it says about itself.
        allowed_tools: The tools that it asks for; they are allowed only if the project allows them.
        place: Where its name is declared.

    Example:
        >>> Skill("pdf-forms", "Fills in PDF forms.", "Fill it in.", "skills/pdf-forms", Path("skills/pdf-forms")).name
        'pdf-forms'
    """

    name: str
    description: str
    body: str
    folder: str
    path: Path
    files: Sequence[str] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed_tools: Sequence[str] = ()
    place: Location | None = None

    def describe(self) -> dict[str, object]:
        """Describe the skill for programs, without its body."""
        return {
            "name": self.name,
            "description": self.description,
            "folder": self.folder,
            "files": list(self.files),
            "license": self.license,
            "compatibility": self.compatibility,
            "metadata": dict(self.metadata),
            "allowed_tools": list(self.allowed_tools),
        }


Found = tuple[Sequence[Skill], Sequence[Diagnostic]]
"""Skills, and what is wrong with them."""

FIND_SKILLS: ExtensionPoint[Callable[[Path, Sequence[str]], Found]] = ExtensionPoint("find_skills")
"""Reads the skills that paths and globs below a project's folder name, for agents that no link has seen."""
