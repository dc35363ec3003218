"""Carry out the pipelines of a command line as a shell would: in order, depending on how the last one ended."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from llm_do.policy.commands.command_line import SimpleCommand
from llm_do.toolsets.shell.captured_output import Capture
from llm_do.toolsets.shell.environment import MissingProgramError
from llm_do.toolsets.shell.processes import PipelineEnd, Stage, run_stages

__all__ = ["run_line"]

_NOT_FOUND = 127
"""The exit code of a shell for a program that doesn't exist."""


async def run_line(
    pipelines: Sequence[Sequence[SimpleCommand]],
    prepare: Callable[[SimpleCommand], Awaitable[Stage]],
    cwd: Path,
    *,
    seconds: float,
    stdout: Capture,
    stderr: Capture,
) -> PipelineEnd:
    """Run pipelines that are joined by `&&`, `||` and `;` within one time limit.

    The codes are those of the commands that ran, without those of a pipeline whose failure a `||` answered. A program
    that doesn't exist ends its pipeline with 127 if there are others; alone, it raises `ToolError`.
    """
    end = time.monotonic() + seconds
    codes: list[int] = []
    last: tuple[int, ...] = (0,)
    for pipeline in pipelines:
        join = pipeline[0].join
        if (join == "&&" and last[-1] != 0) or (join == "||" and last[-1] == 0):
            continue
        if join == "||":
            del codes[-len(last) :]
        try:
            stages = [await prepare(command) for command in pipeline]
        except MissingProgramError as error:
            if len(pipelines) == 1:
                raise
            stderr.feed(f"{error.message}\n".encode())
            last = (_NOT_FOUND,)
        else:
            left = max(end - time.monotonic(), 0.001)
            ended = await run_stages(stages, cwd, seconds=left, stdout=stdout, stderr=stderr)
            last = ended.codes
            if ended.why:
                return PipelineEnd((*codes, *last), ended.why)
        codes += last
    return PipelineEnd(tuple(codes))
