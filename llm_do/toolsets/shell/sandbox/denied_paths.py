"""The paths of a project that rules deny an agent to read or to write, found on disk, for the wall to hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from llm_do.errors import ToolError
from llm_do.policy.denied_effects import DeniedEffects, denied_effects
from llm_do.policy.values import ToolCallInfo
from llm_do.runtime.approval.pending_call import makers_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.text.globs import Glob, PathGlob

__all__ = ["denied_to", "find_denied"]

_MOST = 200_000


def denied_to(ctx: CallContext) -> DeniedEffects:
    """Return what the rules of a run deny the agent of a call."""
    config = ctx.frame.config
    makers = makers_of(ctx.project, ctx.runtime.registry, config.path)
    call = ToolCallInfo("shell", {}, agent=config.name, path=config.path, depth=config.depth, makers=makers)
    return denied_effects(ctx.runtime.approver.policy.denies, call)


def find_denied(root: Path, globs: Sequence[PathGlob]) -> list[Path]:
    """Return the real paths that match one of the globs, without those below others."""
    search = _Search(root)
    for glob in globs:
        if not any(glob.segments):
            return [root]
        search.below("", (), glob)
    return sorted(search.found)


class _Search:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.found: set[Path] = set()
        self.seen = 0

    def below(self, folder: str, parts: tuple[str, ...], glob: PathGlob) -> None:
        """Look for matches in a folder, given by its path and its names."""
        try:
            with os.scandir(self.root / folder) as entries:
                listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            return
        self.seen += len(listed)
        if self.seen > _MOST:
            raise ToolError("there are too many files to find those that a rule denies: name their folder in the rule")
        for name, is_folder in listed:
            inner, path = (*parts, name), f"{folder}{name}"
            if glob.matches(inner, restrictive=True):
                self.found.add(Path(os.path.realpath(self.root / path)))
            elif is_folder and _may_contain(glob.segments, inner):
                self.below(f"{path}/", inner, glob)


def _may_contain(segments: Sequence[Glob | None], folder: Sequence[str]) -> bool:
    """Whether something below a folder may match."""
    for place, name in enumerate(folder):
        segment = segments[place] if place < len(segments) else None
        if segment is None:
            return place < len(segments)
        if not segment.matches(name, fold=True):
            return False
    return len(folder) < len(segments)
