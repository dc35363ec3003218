"""Helpers for running projects in tests: one line each for the project, the run and its events."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_do import AgentSpec, ApprovalDecision, ApprovalRequest, Project, RunResult, Runtime
from llm_do.project.project import Budget, EntrySpec, RuntimeSettings
from llm_do.project.registry import Registered, Registry

_FOLDER = tempfile.TemporaryDirectory(prefix="empty-")
EMPTY = Path(_FOLDER.name)
"""The root of projects that don't need their own."""

__all__ = ["Answers", "Heard", "agent", "carry_out", "heard", "project_of", "run_spec", "runtime_of"]


def agent(name: str, model: Any, **fields: Any) -> AgentSpec:
    """Declare an agent."""
    return AgentSpec(name, model=model, **fields)


def project_of(
    specs: Sequence[AgentSpec] = (),
    entry: str | Callable[..., Any] | None = None,
    *,
    root: Path | None = None,
    tools: dict[str, Any] | None = None,
    toolsets: dict[str, Any] | None = None,
    budget: dict[str, Any] | None = None,
    input_model: Any = None,
    **fields: Any,
) -> Project:
    """Create a project of these agents; keywords are fields of the settings or the project."""
    names = {spec.name: Registered(spec.name, "agent", spec) for spec in specs}
    names |= {name: Registered(name, "tool", item) for name, item in (tools or {}).items()}
    names |= {name: Registered(name, "toolset", item) for name, item in (toolsets or {}).items()}
    settings = {key: fields.pop(key) for key in list(fields) if key in RuntimeSettings.__dataclass_fields__}
    if budget is not None:
        settings["budget"] = Budget(**budget)
    declared = (
        EntrySpec("function", getattr(entry, "__name__", "main"), entry, input_model)
        if callable(entry)
        else EntrySpec("agent", entry or specs[0].name)
    )
    return Project(root or EMPTY, declared, Registry(names), settings=RuntimeSettings(**settings), **fields)


def runtime_of(
    specs: Sequence[AgentSpec] = (),
    entry: Any = None,
    *,
    approvals: Any = "approve_all",
    options: Any = None,
    **fields: Any,
) -> Runtime:
    """Create a runtime for a project of these agents that approves every request."""
    return Runtime(project_of(specs, entry, **fields), approvals=approvals, **(options or {}))


@dataclass
class Heard:
    """The events of a runtime's runs."""

    events: list[Any] = field(default_factory=list)

    def of(self, *types: str) -> list[Any]:
        return [event for event in self.events if event.type in types]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def outline(self) -> list[str]:
        """Type, path and distinguishing fields of each event."""
        return [_line(event) for event in self.events]


def heard(runtime: Runtime, type: str | None = None, **filters: Any) -> Heard:
    """Collect a runtime's events."""
    log = Heard()
    runtime.on(type, log.events.append, **filters)
    return log


def carry_out(runtime: Runtime, input: Any = "go", **options: Any) -> RunResult:
    """Run to the end and return the result however it ended."""

    async def once() -> RunResult:
        try:
            return await runtime.execute(input, **options)
        finally:
            await runtime.aclose()

    return asyncio.run(once())


def run_spec(spec: AgentSpec, input: Any = "go", **fields: Any) -> RunResult:
    """Run a project of a single agent."""
    return carry_out(runtime_of([spec], **fields), input)


@dataclass
class Answers:
    """An approver that answers in this order, repeats the last answer, and keeps the requests."""

    answers: list[Any] = field(default_factory=lambda: ["once"])
    asked: list[ApprovalRequest] = field(default_factory=list)

    async def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if not isinstance(answer, str) else ApprovalDecision(answer)  # type: ignore[arg-type]


def _line(event: Any) -> str:
    parts = [event.type, event.path]
    values = [getattr(event, name, None) for name in ("tool_name", "status", "decision", "text")]
    parts += [value for value in values if isinstance(value, str)]
    return " ".join(parts)
