"""Reads the lock of a project, and compares it with the servers of the manifest."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes.lock import another_server
from llm_do.formats.lock import FILE, Lock
from llm_do.formats.syntax.source import read_text

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic
    from llm_do.formats.syntax.source import Node
    from llm_do.linker.sources.project_files import ProjectFiles
    from llm_do.policy.rules import Rule

__all__ = ["ReadLock", "read_lock"]


@frozen
class ReadLock:
    """A project's lock as it was read.

    Args:
        lock: The lock; None if there is none, a model's tool made it, or it can't be read.
        node: The file's content, with positions.
        diagnostics: What is wrong with it.
    """

    lock: Lock | None = None
    node: Node | None = None
    diagnostics: Sequence[Diagnostic] = ()

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules in it that haven't expired."""
        return self.lock.rules(_today()) if self.lock is not None else ()


def read_lock(files: ProjectFiles) -> ReadLock:
    """Read a project's lock, and find out what is wrong with it."""
    path = files.root / FILE
    if not os.path.lexists(path) or files.new_code.leaves_out(path):
        return ReadLock()
    read = read_text(path, FILE)
    if read.text is None:
        return ReadLock(diagnostics=[*read.diagnostics])
    from llm_do.formats.lock_file import parse_lock

    parsed = parse_lock(read.text, _today())
    found, lock = list(parsed.diagnostics), parsed.value
    configs = files.manifest.toolsets if files.manifest is not None else {}
    if lock is None:
        return ReadLock(diagnostics=found)
    for name, server in lock.servers.items():
        config = configs[name].model_dump() if name in configs else {}
        if config.get("type") == "mcp" and not server.is_at(config) and server.place is not None:
            found.append(another_server(name).at(server.place))
    return ReadLock(lock, parsed.node, found)


def _today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()
