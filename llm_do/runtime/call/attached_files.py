"""The files of the project that a call attaches: which may be, and under which names rules know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_do.errors import LlmDoError
from llm_do.files.local_folder import private_guard
from llm_do.files.paths import fold_name
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.policy.arguments import attached_paths
from llm_do.policy.secrets import secret_file
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Resolved
from llm_do.runtime.context.call_context import current_call

__all__ = ["attached_files", "attachment_guard"]


def attachment_guard(trail: tuple[str, ...]) -> None:
    """Refuse a path that no call may attach, under any of its names; a guard for `Root`.

    A model may have written it, or a user of a service: it gives no more than a tool that reads files does.
    """
    private_guard(trail)
    for path in trail:
        if entry := secret_file("/".join(map(fold_name, path.split("/")))):
            why = f"it may hold secrets ({entry})"
            raise FileRefusedError(trail[0], why, reason="protected", hint="Continue without it; do not retry.")


def attached_files(facts: ToolFacts, args: Mapping[str, Any]) -> Mapping[str, Resolved]:
    """Return the paths that a call attaches, with the names of links on their way, for rules that deny or ask."""
    named = attached_paths(facts, args)
    if not named:
        return {}
    root = Root(current_call().project.root)
    found: dict[str, Resolved] = {}
    for name, paths in named.items():
        if not isinstance(paths, tuple):
            found[name] = None
            continue
        every: list[str] = []
        for path in map(str, paths):
            try:
                every += root.trail(path)
            except LlmDoError:  # it can't be attached, as the call says
                every.append(path)
        found[name] = tuple(every)
    return found
