"""LD8xx: unused things."""

from __future__ import annotations

from llm_do.spec.codes.code import Code

__all__ = ["UNUSED"]

UNUSED: dict[str, Code] = {
    "LD801": Code(
        "Unreachable agent",
        "warning",
        "Neither the entry nor an agent that it can reach lists the agent, and no Python file mentions it.",
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
