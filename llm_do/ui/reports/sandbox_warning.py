"""The warning of `check` about commands that a project allows on a machine without a sandbox."""

from __future__ import annotations

from collections.abc import Iterator

from llm_do.diagnostics.codes.rules import no_sandbox
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.linker.sources.conversion import sandbox_spec
from llm_do.linker.sources.project_files import ProjectFiles

__all__ = ["sandbox_warnings"]


def sandbox_warnings(files: ProjectFiles | None) -> list[Diagnostic]:
    """Return the warning for a project's files, at the first entry that allows commands; empty if there is none.

    A project that requires a sandbox, or wants none, isn't warned.
    """
    if files is None or files.manifest is None or sandbox_spec(files.manifest.sandbox).mode != "auto":
        return []
    place = next(_allowing(files), None)
    if place is None:
        return []
    from llm_do.toolsets.shell.sandbox import status

    found = status()
    return [] if found.active else [no_sandbox(found.reason).at(place)]


def _allowing(files: ProjectFiles) -> Iterator[Location]:
    """Yield the entries of the manifest that allow commands."""
    manifest = files.manifest
    if manifest is None:
        return
    for name, config in manifest.toolsets.items():
        if config.type == "shell" and config.allow:
            yield files.place("toolsets", name, "allow", 0)
    for index, rule in enumerate(manifest.approvals.allow):
        text = rule if isinstance(rule, str) else rule.rule
        if "shell" in text.partition("(")[0]:
            yield files.place("approvals", "allow", index)
