"""Files below one folder as tools: the built-in toolsets, those a manifest configures, and those of 0.3.

A path below the root is all a model can name; `llm_do.files` sees to that. Here is which of those files it may
touch, what it is told of them, and what a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import FunctionToolset

from llm_do.errors import UsageError
from llm_do.files.root import Root
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.filesystem.classic_files import FileSystemConfig, FileSystemToolset, ReadOnlyFileSystemToolset
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.filesystem.file_toolset import file_toolset
from llm_do.toolsets.filesystem.protection import Protection

__all__ = [
    "FileSystemConfig",
    "FileSystemToolset",
    "ReadOnlyFileSystemToolset",
    "configured",
    "filesystem_cwd",
    "filesystem_cwd_ro",
    "filesystem_project",
    "filesystem_project_ro",
]

_OPTIONS = ("type", "root", "read_only", "ignore", "allow_protected")


def filesystem_cwd(ctx: BuiltinContext) -> FunctionToolset[object]:
    """All file tools, below the working directory.

    Example:
        >>> toolset = filesystem_cwd(BuiltinContext("filesystem_cwd", project_root=Path("."), cwd=Path(".")))
        >>> list(toolset.tools)[:4]
        ['read_file', 'list_files', 'search_files', 'write_file']
    """
    return _toolset(ctx, ctx.cwd)


def filesystem_cwd_ro(ctx: BuiltinContext) -> FunctionToolset[object]:
    """The file tools that read, below the working directory."""
    return _toolset(ctx, ctx.cwd, read_only=True)


def filesystem_project(ctx: BuiltinContext) -> FunctionToolset[object]:
    """All file tools, below the project's folder."""
    return _toolset(ctx, ctx.project_root)


def filesystem_project_ro(ctx: BuiltinContext) -> FunctionToolset[object]:
    """The file tools that read, below the project's folder."""
    return _toolset(ctx, ctx.project_root, read_only=True)


def configured(ctx: BuiltinContext) -> FunctionToolset[object]:
    """The toolset that a manifest's `{"type": "filesystem", ...}` describes.

    Args:
        ctx: Its options are `root` (relative to the project), `read_only`, `ignore` (what is not listed or
            searched, as in a `.gitignore` file) and `allow_protected` (globs of what is not blocked).

    Returns:
        A toolset without state; runs may share it.

    Raises:
        UsageError: An option is unknown or of the wrong type.

    Example:
        >>> options = {"type": "filesystem", "root": "docs", "read_only": True}
        >>> list(configured(BuiltinContext("docs", Path("."), Path("."), options=options)).tools)
        ['read_file', 'list_files', 'search_files']
    """
    for key in ctx.options:
        if key not in _OPTIONS:
            raise UsageError(f"the toolset {ctx.name} has an unknown option {key!r}")
    root = ctx.options.get("root", ".")
    read_only = ctx.options.get("read_only", False)
    if not isinstance(root, str) or not isinstance(read_only, bool):
        raise UsageError(f"the toolset {ctx.name} needs a text as `root` and true or false as `read_only`")
    return _toolset(
        ctx,
        ctx.project_root / root,
        read_only=read_only,
        ignore=_texts(ctx, ctx.options, "ignore"),
        allow=_texts(ctx, ctx.options, "allow_protected"),
    )


def _toolset(
    ctx: BuiltinContext,
    root: Path,
    *,
    read_only: bool = False,
    ignore: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
) -> FunctionToolset[object]:
    protection = Protection(Root(root, base=ctx.project_root), ctx.python_files, allow)
    return file_toolset(FileTools(protection, ignore), name=ctx.name, read_only=read_only)


def _texts(ctx: BuiltinContext, options: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value: object = options.get(key, ())
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
        return tuple(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    raise UsageError(f"the toolset {ctx.name} needs a list of texts as `{key}`")
