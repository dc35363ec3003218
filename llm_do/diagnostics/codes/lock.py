"""LD65x: the lock, `llm-do.lock`."""

from __future__ import annotations

from llm_do.diagnostics.codes.code import Code, Problem

LD650 = Code(
    "LD650",
    "Merge conflict in the lock",
    "error",
    "Version control left both sides of a change in `llm-do.lock`.",
    "remove the marks and keep the approvals of both sides; `llm-do lock` then rewrites the servers",
    wrong="<<<<<<< HEAD",
    right='"version": 1',
)


def merge_conflict() -> Problem:
    """A line with which version control marks a conflict."""
    return LD650.problem("a merge conflict isn't resolved here")


LD651 = Code(
    "LD651",
    "Unknown version of the lock",
    "error",
    "The lock was written by a newer llm-do, which may know more than this one can compare.",
    "update llm-do",
    wrong='"version": 99',
    right='"version": 1',
)


def unknown_version(version: object) -> Problem:
    """A `version` other than ours."""
    return LD651.problem(f"the lock has version {version!r}, and this llm-do knows version 1")


LD652 = Code(
    "LD652",
    "Edited entry in the lock",
    "warning",
    "An entry isn't as it was reviewed: its digest belongs to another text. A tool counts as changed, and an approval "
    "answers no question.",
    "restore the entry; `llm-do lock` rewrites the tools, and a rule allows calls without a digest",
    wrong='"description": "Search everything."',
    right='"description": "Search the pages."',
)


def edited_tool(name: str) -> Problem:
    """A server's tool whose digest doesn't fit."""
    return LD652.problem(f"the tool {name} was edited: its digest is that of another one")


def edited_approval() -> Problem:
    """A call whose digest doesn't fit."""
    return LD652.problem("the call was edited, and isn't the one that was allowed")


LD653 = Code(
    "LD653",
    "Expired approval in the lock",
    "warning",
    "An approval holds until the end of the day in its `until`. Afterwards it answers no question.",
    "remove the entry, or review it and set another day",
    wrong='"until": "2020-01-31"',
    right='"until": "2999-01-31"',
)


def expired_approval(until: str) -> Problem:
    """An approval whose last day has passed."""
    return LD653.problem(f"the approval expired on {until}")


LD654 = Code(
    "LD654",
    "Another server than the locked one",
    "warning",
    "The lock has a server of this name with another command or URL. Its tools count as new: no rule with a wildcard "
    "allows them.",
    "check the server, then run `llm-do lock`",
    wrong='"url": "https://example.com/mcp"',
    right='"url": "https://example.org/mcp"',
)


def another_server(name: str) -> Problem:
    """A server whose address isn't the locked one."""
    return LD654.problem(f"the server {name} has another command or URL than in the manifest")


LD655 = Code(
    "LD655",
    "Invalid approval in the lock",
    "error",
    "An approval is a `rule`, or a call with its `digest`.",
    "write a rule, such as `main:send(to=ann)`, or copy an entry that a run has printed",
    wrong='{"rule": "write_file(notes"}',
    right='{"rule": "write_file(notes/**)"}',
)


def invalid_approval(message: str) -> Problem:
    """An approval that can't be read."""
    return LD655.problem(message)
