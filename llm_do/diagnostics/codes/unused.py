"""LD8xx: unused things."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code

__all__ = ["UNUSED"]

UNUSED: dict[str, Code] = {
    "LD801": Code(
        "Unreachable agent or flow",
        "warning",
        "Neither the entry nor an agent or flow that it can reach lists it, and no Python file mentions it. Of a flow "
        "that nothing reaches the members aren't told too.",
    ),
    "LD802": Code(
        "Unused Python file",
        "warning",
        "Nothing that the file exports is used, no reference leads to it and no other file imports it.",
    ),
    "LD803": Code(
        "Unused toolset",
        "warning",
        "The manifest configures a toolset that no agent lists.",
    ),
}
