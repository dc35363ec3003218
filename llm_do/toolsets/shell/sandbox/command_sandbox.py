"""`CommandSandbox`: what a shell toolset asks before and after a command that runs without approval."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from llm_do.concurrency.event_loops import complete
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.files.code_tree import CodeScan
from llm_do.files.code_watch import CodeWatch
from llm_do.policy.denied_effects import DeniedEffects
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.toolsets.shell.sandbox.backends import Backend, status
from llm_do.toolsets.shell.sandbox.confinement import (
    Confinement,
    Sight,
    closed_wall,
    command_wall,
    confine,
    reading_wall,
)

__all__ = ["CommandSandbox", "Guard"]

NO_SANDBOX = "the project requires a sandbox for commands that run without approval, and this machine has none"


@dataclass(slots=True)
class Guard:
    """One command that runs without a question: how it is confined, and afterwards which code is new."""

    sandbox: CommandSandbox
    scan: CodeScan
    backend: Backend | None
    new_code: Sequence[str] = ()

    def confine(self, argv: Sequence[str], cwd: Path, sight: Sight, denied: DeniedEffects) -> Confinement:
        """Put one process behind the wall, with what it is shown, and without what rules deny."""
        if self.backend is None:
            return Confinement(argv, {})
        own, root = self.sandbox, self.sandbox.watch.root
        if own.reads_only:
            wall = reading_wall(root, self.scan, sight)
        else:
            wall = command_wall(root, self.scan, sight, own.spec, network=own.network)
        return confine(argv, closed_wall(wall, denied, sight), cwd, self.backend)


@dataclass(frozen=True)
class CommandSandbox:
    """The sandbox of a shell toolset.

    Args:
        watch: The watch over the project's code.
        spec: The project's settings.
        network: Whether commands may use the network.
        reads_only: Whether commands may write nothing at all.
    """

    watch: CodeWatch
    spec: SandboxSpec = field(default_factory=SandboxSpec)
    network: bool = True
    reads_only: bool = False

    @property
    def backend(self) -> Backend | None:
        """What confines commands here; None if nothing does."""
        return None if self.spec.mode == "off" else status().backend

    @property
    def is_missing(self) -> bool:
        """Whether the project requires a sandbox and there is none."""
        return self.spec.mode == "required" and self.backend is None

    @asynccontextmanager
    async def guard(self, maker: str) -> AsyncGenerator[Guard]:
        """Confine and watch what runs inside; `maker` describes the command."""
        backend: Backend | None = await run_in_worker(lambda: self.backend)
        if self.reads_only:
            yield Guard(self, await run_in_worker(self.watch.tree.scan), backend)
            return
        guard = Guard(self, await run_in_worker(self.watch.begin), backend)
        try:
            yield guard
        finally:
            guard.new_code = await complete(run_in_worker(partial(self.watch.end, maker, confined=backend is not None)))
