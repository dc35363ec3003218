"""The failure of a case whose replay isn't what its run was: what differs, and where that is written."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from llm_do.testing.cases.results import Failure
from llm_do.testing.cassettes.differences import describe_differences
from llm_do.testing.cassettes.sources import Sources

if TYPE_CHECKING:
    from llm_do.errors import ReplayError
    from llm_do.project.project import Project
    from llm_do.runtime.record.sent_request import SentRequest
    from llm_do.testing.cases.case import Case

__all__ = ["replay_failure"]

_HINT = (
    "Such a run can't be resumed. Let times, random numbers, files and requests go through"
    ' `await ctx.step("name", function)`.'
)


def replay_failure(case: Case, project: Project, error: ReplayError) -> Failure:
    """The failure of a case.

    Args:
        case: The case.
        project: Its project.
        error: What differs.
    """
    what, block = error.difference, error.block
    file, line = error.file, error.line
    if error.requests is not None and error.agent_path is not None:
        before, after = cast("tuple[SentRequest, SentRequest]", error.requests)
        agent = error.agent_path.rpartition("/")[2]
        found = describe_differences(before, after, agent, Sources(project), ("run", "replay"))
        request = what.partition(" isn't ")[0]
        what = f"{request} isn't what was sent before: {found[0].what}"
        block = "\n".join([found[0].block, *(f"{each.what}{each.place}\n{each.block}" for each in found[1:])])
        if file is None:
            file, line = found[0].file, found[0].line
    if file is None or Path(file).is_absolute():
        place, line = case.file, case.line
    else:
        place = Path(PurePosixPath(file))
    return Failure(place, line, f"its replay differs: {what}", block=block, hint=_HINT)
