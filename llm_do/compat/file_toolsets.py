"""The file toolsets of 0.3 with their configuration, tools and results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from pydantic_ai import FunctionToolset

from llm_do.errors import UsageError
from llm_do.files.code_files import CodeFiles
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.file_tools import Count, FileTools, Positive, list_below
from llm_do.toolsets.filesystem.file_toolset import build_tools
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.filesystem.text_ranges import ReadResult, read_characters

__all__ = ["FileSystemConfig", "FileSystemToolset", "ReadOnlyFileSystemToolset"]


class FileSystemConfig(TypedDict, total=False):
    """The configuration of a `FileSystemToolset`.

    Args:
        base_path: The root folder, the working directory by default.
        read_approval: Whether reads need approval, False by default.
        write_approval: Whether writes need approval, True by default.
    """

    base_path: str | Path
    read_approval: bool
    write_approval: bool


class FileSystemToolset(FunctionToolset[object]):
    """`read_file`, `write_file` and `list_files` below one folder, counted in characters.

    Args:
        config: The folder and the approvals.
        id: A name for the toolset.
        max_retries: Retries of a call with invalid arguments.
        python_files: Further files that only a person can allow a write to, in addition to manifests and agents.

    Raises:
        UsageError: The configuration has an unknown key.

    Example:
        >>> toolset = FileSystemToolset({"base_path": ".", "write_approval": True})
        >>> sorted(toolset.tools)
        ['list_files', 'read_file', 'write_file']
    """

    _names: tuple[str, ...] = ("read_file", "write_file", "list_files")

    def __init__(
        self,
        config: FileSystemConfig | None = None,
        id: str | None = None,
        max_retries: int = 1,
        *,
        python_files: Sequence[Path] = (),
    ) -> None:
        options: FileSystemConfig = config or {}
        unknown = sorted(set(options) - set(FileSystemConfig.__annotations__))
        if unknown:
            raise UsageError(
                f"{type(self).__name__} has no option {unknown[0]!r}",
                hint=f"Its options are {', '.join(FileSystemConfig.__annotations__)}.",
            )
        protection = Protection(
            Root(options.get("base_path", ".")),
            CodeFiles(Path("/"), listed=python_files, data_folders=["."]),  # it knows of no project
            reads="ask" if options.get("read_approval", False) else "allow",
            writes="ask" if options.get("write_approval", True) else "allow",
        )
        super().__init__(
            build_tools(_CharacterTools(protection), self._names, id or "filesystem"), max_retries=max_retries, id=id
        )


class ReadOnlyFileSystemToolset(FileSystemToolset):
    """`read_file` and `list_files` of a `FileSystemToolset`."""

    _names = ("read_file", "list_files")


class _CharacterTools(FileTools):
    def read_file(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, path: str, max_chars: Positive = 20_000, offset: Count = 0
    ) -> ReadResult:
        """Read a text file, by characters.

        Args:
            path: Path of the file, relative to the root folder.
            max_chars: Characters to read at most.
            offset: Characters to skip first.
        """
        with self.root.open(path, guard=self.protection.reading) as stream:
            return read_characters(stream, path, offset, max_chars)

    def list_files(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, path: str = ".", pattern: str = "**/*"
    ) -> list[str]:
        """List files, in order; what .gitignore files name is left out. A last one in brackets says if there are more.

        Args:
            path: The folder, relative to the root folder.
            pattern: Glob relative to that folder: `*` is one level, `**/*.py` any depth.
        """
        found, note = list_below(self, path, pattern)
        return [each.path for each in found if each.kind == "file"] + ([f"[{note}]"] if note else [])
