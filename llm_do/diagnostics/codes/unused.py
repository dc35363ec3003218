"""LD8xx: unused things."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import with_article

LD801 = Code(
    "LD801",
    "Unreachable agent or flow",
    "warning",
    "Neither the entry nor an agent or flow that it can reach lists it, no Python file mentions it, and no test runs "
    "it. The members of an unreachable flow aren't reported as well.",
    "list it in an agent's `toolsets`, or remove it",
    wrong="name: main",
    right="name: main\ntoolsets: [old]",
)


def unreachable(kind: str, name: str) -> Problem:
    """An agent or flow."""
    other = "another agent" if kind == "agent" else with_article("agent")
    return LD801.problem(f"nothing reaches the {kind} `{name}`", f"list it in {other}'s `toolsets`, or remove it")


LD802 = Code(
    "LD802",
    "Unused Python file",
    "warning",
    "Nothing that the file exports is used, no reference leads to it and no other file imports it.",
    "remove it from python_files, or export something",
    wrong="name: main",
    right="name: main\ntools: [add]",
)


def unused_exports(file: str) -> Problem:
    """A file whose exports nothing uses."""
    return LD802.problem(f"nothing uses what {file} exports")


def no_exports(file: str) -> Problem:
    """A file that exports nothing."""
    return LD802.problem(f"{file} exports nothing that llm-do knows")


LD803 = Code(
    "LD803",
    "Unused toolset",
    "warning",
    "The manifest configures a toolset that no agent lists.",
    "list it in an agent's `toolsets`, or remove it",
    wrong="name: main",
    right="name: main\ntoolsets: [docs]",
)


def unused_toolset(name: str) -> Problem:
    """A configured toolset."""
    return LD803.problem(f"no agent lists the toolset `{name}`")
