"""The file toolsets: the built-in ones and those that a manifest configures.

A model can name only paths below a toolset's root; `llm_do.files` enforces that. This package decides which of those
files a model may touch, what it reads of them, and which calls need approval.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_ai import FunctionToolset

from llm_do._startup.lazy import lazy_exports
from llm_do.files.root import Root
from llm_do.formats.toolset_config import FilesystemConfig
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.filesystem.file_tools import FileTools
from llm_do.toolsets.filesystem.file_toolset import file_toolset
from llm_do.toolsets.filesystem.protection import Protection

if TYPE_CHECKING:
    from llm_do.compat.file_toolsets import (
        FileSystemConfig as FileSystemConfig,
        FileSystemToolset as FileSystemToolset,
        ReadOnlyFileSystemToolset as ReadOnlyFileSystemToolset,
    )
else:  # a type checker that saw it would take any name for one of this module's
    _LEFT_OVERS = ("FileSystemConfig", "FileSystemToolset", "ReadOnlyFileSystemToolset")
    __getattr__, _ = lazy_exports(__name__, dict.fromkeys(_LEFT_OVERS, "llm_do.compat.file_toolsets"))

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


def filesystem_cwd(ctx: BuiltinContext) -> FunctionToolset[object]:
    """Provide all file tools below the working directory.

    Example:
        >>> toolset = filesystem_cwd(BuiltinContext("filesystem_cwd", project_root=Path("."), cwd=Path(".")))
        >>> list(toolset.tools)[:4]
        ['read_file', 'list_files', 'search_files', 'write_file']
    """
    return _toolset(ctx, ctx.cwd)


def filesystem_cwd_ro(ctx: BuiltinContext) -> FunctionToolset[object]:
    """Provide the file tools that read, below the working directory."""
    return _toolset(ctx, ctx.cwd, read_only=True)


def filesystem_project(ctx: BuiltinContext) -> FunctionToolset[object]:
    """Provide all file tools below the project's folder."""
    return _toolset(ctx, ctx.project_root)


def filesystem_project_ro(ctx: BuiltinContext) -> FunctionToolset[object]:
    """Provide the file tools that read, below the project's folder."""
    return _toolset(ctx, ctx.project_root, read_only=True)


def configured(ctx: BuiltinContext, config: FilesystemConfig) -> FunctionToolset[object]:
    """Build the toolset that a manifest's `{"type": "filesystem", ...}` describes; runs may share it.

    Example:
        >>> config = FilesystemConfig(type="filesystem", root="docs", read_only=True)
        >>> list(configured(BuiltinContext("docs", Path("."), Path(".")), config).tools)
        ['read_file', 'list_files', 'search_files']
    """
    return _toolset(
        ctx,
        ctx.project_root / config.root,
        read_only=config.read_only,
        ignore=tuple(config.ignore),
        allow=tuple(config.allow_protected),
    )


def _toolset(
    ctx: BuiltinContext,
    root: Path,
    *,
    read_only: bool = False,
    ignore: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
) -> FunctionToolset[object]:
    protection = Protection(Root(root, base=ctx.project_root), ctx.code_watch.tree.code, allow)
    return file_toolset(FileTools(protection, ignore), name=ctx.name, read_only=read_only)
