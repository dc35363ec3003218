"""The tools of agents with skills: `load_skill` gives a skill's instructions, `read_skill_file` the files beside them.

Both know only what the link found. A skill's scripts are commands like any other, for a shell and its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext

from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import ToolError
from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.values import Resolved, to_resolved
from llm_do.project.skill import Skill
from llm_do.project.tools.builtin_toolsets import SKILLS
from llm_do.runtime.tools.traits import BuiltinContext, ToolTraits
from llm_do.text.words import did_you_mean
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.filesystem.text_ranges import is_binary, read_lines
from llm_do.toolsets.function_tools import function_tool

__all__ = ["skills"]

_MOST_LISTED = 50
"""Files of a skill that `load_skill` lists."""

_HEAD = 8192


def skills(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Build the toolset that loads an agent's skills; every agent with `skills:` has it.

    Example:
        >>> from pathlib import Path
        >>> list(skills(BuiltinContext("skills", Path("."), Path("."))).tools)
        ['load_skill', 'read_skill_file']
    """
    made = _SkillTools(ctx)
    load = ToolTraits(SKILLS["load_skill"], ctx.name, "load_skill", describe=_describe_load)
    read = ToolTraits(
        SKILLS["read_skill_file"], ctx.name, "read_skill_file", describe=_describe_read, resolve=made.resolve
    )
    functions: list[tuple[Callable[..., Any], ToolTraits]] = [(made.load_skill, load), (made.read_skill_file, read)]
    return FunctionToolset([function_tool(function, traits) for function, traits in functions], id=ctx.name)


class _SkillTools:
    """The tools for the skills of one agent; no call changes the object."""

    def __init__(self, ctx: BuiltinContext) -> None:
        self._skills = {skill.name: skill for skill in ctx.skills}
        self._project = Root(ctx.project_root)

    async def load_skill(self, ctx: RunContext[Any], name: str) -> str:
        """Load a skill: its instructions, and what files it has.

        Args:
            name: The skill's name.
        """
        return _loaded(self._skill(name), reader=_reader(ctx.tool_name))

    async def read_skill_file(
        self,
        skill: str,
        path: str,
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1)] | None = None,
    ) -> str:
        """Read a text file of a skill, by lines. A note in brackets at the end says if the file continues.

        Args:
            skill: The skill's name.
            path: Path of the file, relative to the skill's folder.
            offset: Lines to skip first.
            limit: Lines to read at most, 2000 if left out.
        """
        return await run_in_worker(_read, self._skill(skill), path, offset, limit)

    def resolve(self, args: Mapping[str, Any]) -> Mapping[str, Resolved]:
        """Return the path below the project's folder, for rules."""
        skill = self._skills.get(str(args.get("skill")))
        if skill is None:
            return {}
        try:
            return {"path": to_resolved(self._project.place(f"{skill.folder}/{args.get('path', '')}"))}
        except FileRefusedError:
            return {"path": None}

    def _skill(self, name: str) -> Skill:
        own = self._skills
        if name in own:
            return own[name]
        known = did_you_mean(name, own) or (f"your skills: {', '.join(own)}" if own else "you have none")
        raise ToolError(f"there is no skill {display_path(name, 80)!r}; {known}")


def _reader(tool_name: str | None) -> str:
    """The name that the calling agent's model has for the other tool."""
    return (tool_name or "load_skill").removesuffix("load_skill") + "read_skill_file"


def _loaded(skill: Skill, reader: str) -> str:
    """What a model gets: where the skill is, what it has, and its instructions, as they are written."""
    lines = [f"The skill {skill.name}. Its folder in the project is {skill.folder}."]
    if skill.compatibility:
        lines.append(f"It says that it needs: {skill.compatibility}")
    beside = [file for file in skill.files if file != "SKILL.md"]
    if beside:
        more = f" and {len(beside) - _MOST_LISTED:,} more" if len(beside) > _MOST_LISTED else ""
        lines.append(f"Its files, for {reader}: {', '.join(beside[:_MOST_LISTED])}{more}")
    if any(file.startswith("scripts/") for file in beside):
        lines.append(f"Commands name its scripts by their path in the project: {skill.folder}/scripts/...")
    return "\n".join([*lines, "", skill.body or "It has no instructions."])


def _read(skill: Skill, path: str, offset: int, limit: int | None) -> str:
    root = Root(skill.path)
    name = root.trail(path)[-1]
    if name not in skill.files:
        same = next((file for file in skill.files if PurePosixPath(file).name == PurePosixPath(name).name), None)
        near = f"did you mean `{same}`?" if same is not None else did_you_mean(path, skill.files)
        hint = near or "load_skill lists its files."
        raise FileRefusedError(
            display_path(path), f"the skill {skill.name} has no such file", reason="missing", hint=hint
        )
    with root.open(path, guard=Protection(root).reading) as stream:
        if is_binary(stream.read(_HEAD)):
            raise FileRefusedError(display_path(path), "it is a binary file, not text", reason="not_text")
        stream.seek(0)
        return read_lines(stream, path, offset, limit)


def _describe_load(args: Mapping[str, Any]) -> str:
    return f"Load the skill {display_path(str(args.get('name', '')), 80)}"


def _describe_read(args: Mapping[str, Any]) -> str:
    path, skill = display_path(str(args.get("path", ""))), display_path(str(args.get("skill", "")), 80)
    return f"Read the file {path} of the skill {skill}"
