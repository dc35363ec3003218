"""Check MCP servers as far as that is possible without starting one: whether their programs are there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from llm_do._extras import has_extra, missing_extra
from llm_do.diagnostics.codes import environment
from llm_do.formats.pasted_servers import split_command
from llm_do.formats.syntax.source import Node
from llm_do.formats.variables import UnsetVariableError, expand_variables
from llm_do.linker.analysis.names import Names

__all__ = ["check_servers", "find_program"]


def check_servers(configs: Mapping[str, Mapping[str, Any]], node: Node, names: Names) -> None:
    """Warn of servers whose program isn't on this machine, and of the first one if the extra `mcp` is missing."""
    servers = [name for name, config in configs.items() if config.get("type") == "mcp"]
    if servers and not has_extra("mcp"):
        missing = missing_extra("mcp", "a toolset of type `mcp`")
        names.report(environment.missing_package(*missing), node.place_of(("toolsets", servers[0], "type")))
    for toolset, config in configs.items():
        command = config.get("command") if config.get("type") == "mcp" else None
        if not isinstance(command, list) or not command or names.root is None:
            continue
        words = [*map(str, cast("list[object]", command))]
        if find_program(words[0], config.get("env"), names.root, names.variables()) is None:
            split = split_command(words[0])
            place = node.place_of(("toolsets", toolset, "command", 0))
            names.report(environment.missing_program(words[0], [*split, *words[1:]] if len(split) > 1 else None), place)


def find_program(program: str, environ: object, root: Path, variables: Mapping[str, str]) -> str | None:
    """Return where a server's program is, as it would be started: below the root, or on the PATH that it gets."""
    try:
        program = expand_variables(program, variables)
    except UnsetVariableError:
        return program  # reported as such
    if "\0" in program:
        return None
    if os.sep in program:
        return shutil.which(str(root / program))
    path = cast("dict[str, object]", environ).get("PATH") if isinstance(environ, dict) else None
    if isinstance(path, str) and "${" not in path:
        return shutil.which(program, path=path)
    return shutil.which(program)
