"""Reads the lock of a project, and compares it with the servers of the manifest."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING

from llm_do.diagnostics.codes.lock import another_server
from llm_do.formats.lock import FILE, Lock
from llm_do.formats.syntax.source import read_text

if TYPE_CHECKING:
    from llm_do.diagnostics.diagnostic import Diagnostic
    from llm_do.linker.sources.project_files import ProjectFiles

__all__ = ["read_lock"]


def read_lock(files: ProjectFiles) -> tuple[Lock | None, list[Diagnostic]]:
    """Return a project's lock, None if there is none or a model's tool made it, and what is wrong with it."""
    path = files.root / FILE
    if not os.path.lexists(path) or files.new_code.leaves_out(path):
        return None, []
    read = read_text(path, FILE)
    if read.text is None:
        return None, [*read.diagnostics]
    from llm_do.formats.lock_file import parse_lock

    parsed = parse_lock(read.text, datetime.datetime.now(tz=datetime.UTC).date())
    found, lock = list(parsed.diagnostics), parsed.value
    configs = files.manifest.toolsets if files.manifest is not None else {}
    if lock is None:
        return None, found
    for name, server in lock.servers.items():
        config = configs[name].model_dump() if name in configs else {}
        if config.get("type") == "mcp" and not server.is_at(config) and server.place is not None:
            found.append(another_server(name).at(server.place))
    return lock, found
