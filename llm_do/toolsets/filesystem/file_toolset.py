"""File tools as PydanticAI toolsets, and the decisions about their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import FunctionToolset, Tool

from llm_do.files.paths import display_path
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.values import Decision, Resolved, ToolCallInfo, to_resolved
from llm_do.project.tools.builtin_toolsets import FILES
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.text.words import with_count
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.function_tools import function_tool

__all__ = ["build_tools", "file_toolset"]

_ITSELF = ("move_file", "delete_file")
"""The tools that act on a link itself, not on its target."""


def file_toolset(tools: FileTools, *, name: str, read_only: bool) -> FunctionToolset[object]:
    """Build a toolset of file tools; it has no state, so runs may share it."""
    names = [each for each, facts in FILES.items() if not (read_only and facts.writes)]
    return FunctionToolset(build_tools(tools, names, name), id=name)


def build_tools(tools: FileTools, names: Sequence[str], toolset: str) -> list[Tool[object]]:
    """Build PydanticAI tools from the methods of `tools` with these names."""
    return [function_tool(getattr(tools, name), _traits(tools, name, toolset), name) for name in names]


def _traits(tools: FileTools, name: str, toolset: str) -> ToolTraits:
    protection = tools.protection
    follow = name not in _ITSELF
    facts = replace(FILES[name], arguments=None, default=protection.writes if FILES[name].writes else protection.reads)

    def decide(call: ToolCallInfo) -> Decision:
        paths = [_path(call.args, each) for each in facts.paths]
        if not facts.writes:
            return protection.read_decision(paths[0])
        return protection.write_decision(*paths, follow=follow)

    def resolve(args: Mapping[str, Any]) -> Mapping[str, Resolved]:
        return {each: _resolved(tools.root, _path(args, each), follow=follow) for each in facts.paths}

    previews = {"write_file": tools.preview_of_write, "edit_file": tools.preview_of_edit}
    checks = {
        "write_file": tools.check_write,
        "edit_file": tools.check_edit,
        "move_file": tools.check_move,
        "delete_file": tools.check_delete,
    }
    return ToolTraits(
        facts,
        toolset=toolset,
        tool=name,
        decide=decide,
        resolve=resolve,
        describe=lambda args: _describe(name, args),
        preview=previews.get(name),
        check=checks.get(name),
        undoable=True,
    )


def _path(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name, ".")
    return value if isinstance(value, str) else ""


def _resolved(root: Root, path: str, *, follow: bool) -> Resolved:
    try:
        return to_resolved(root.place(path, follow=follow))
    except FileRefusedError:
        return None


def _describe(name: str, args: Mapping[str, Any]) -> str:
    path = display_path(_path(args, "path"))
    match name:
        case "read_file":
            return f"Read the file {path}"
        case "list_files":
            return f"List the files in {path}"
        case "search_files":
            return f"Search the files in {path} for {display_path(str(args.get('pattern', '')))}"
        case "write_file":
            return f"Write {with_count(len(str(args.get('content', ''))), 'character')} to the file {path}"
        case "edit_file":
            return f"Edit the file {path}"
        case "make_directory":
            return f"Make the folder {path}"
        case "move_file":
            return f"Move the file {display_path(_path(args, 'source'))} to {display_path(_path(args, 'target'))}"
        case _:
            return f"Delete the file {path}"
