"""Which skills an import writes, each under a name of its own. It touches no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from llm_do._startup.frozen import frozen
from llm_do.importing.frontmatter import UnreadableFileError
from llm_do.importing.skill_translation import SkillDraft, translate_skill, with_name
from llm_do.importing.translation import Note

__all__ = ["SKILLS", "SkillPlan", "plan_skills"]

SKILLS = "skills"
"""Where skills are written, below the project's folder."""


class _Source(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def text(self) -> str: ...


@frozen
class SkillPlan:
    """What an import would write of skills.

    Args:
        folders: The folder of each, below the project's, by its source.
        texts: The text of its `SKILL.md`, by its source.
        names: The folders by the names that their writers gave them.
        notes: What couldn't be converted, each with its file.
        refused: Why files can't be imported, as the end of a sentence about each.
    """

    folders: Mapping[str, str]
    texts: Mapping[str, str]
    names: Mapping[str, str]
    notes: tuple[tuple[str, Note], ...] = ()
    refused: Mapping[str, str] | None = None


def plan_skills(sources: Iterable[_Source]) -> SkillPlan:
    """Decide what to write for the `SKILL.md` files of a number of skills."""
    texts: dict[str, str] = {}
    folders: dict[str, str] = {}
    names: dict[str, str] = {}
    notes: list[tuple[str, Note]] = []
    refused: dict[str, str] = {}
    used: dict[str, SkillDraft] = {}
    for source in sources:
        try:
            draft = translate_skill(source.text, source.file)
        except UnreadableFileError as error:
            refused[source.file] = str(error)
            continue
        notes += [(source.file, note) for note in draft.notes]
        if not draft.is_kept:
            continue
        name = next(name for number in range(1, len(used) + 2) if (name := _numbered(draft.name, number)) not in used)
        if name != draft.name:
            notes.append((source.file, Note(f"it is called `{name}`: there is a skill `{draft.name}` already")))
        used[name] = draft
        folders[source.file] = f"{SKILLS}/{name}"
        texts[source.file] = draft.text if name == draft.name else with_name(draft, name)
        for each in (draft.written, draft.name, source.file.rpartition("/")[0].rpartition("/")[2]):
            names.setdefault(each, folders[source.file])
    return SkillPlan(folders, texts, names, tuple(notes), refused)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name[:60]}-{number}"
