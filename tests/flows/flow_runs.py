"""Helpers for running flows in tests: one line each for a member, the runtime, the run and its events."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from llm_do import AgentArgs, AgentSpec, Project, RunResult, Runtime
from llm_do.flows import FlowSpec
from llm_do.project.project import Budget, EntrySpec, RuntimeSettings
from llm_do.project.registry import Registered, Registry
from tests.support.runs import Heard, agent, heard
from tests.support.scripted import script

__all__ = [
    "Facts",
    "Note",
    "Report",
    "asked",
    "finish",
    "flow_project",
    "flow_runtime",
    "outline",
    "run_flow",
    "saying",
    "streamed",
    "text_of",
]


class Facts(BaseModel):
    title: str
    points: list[str]


class Report(AgentArgs):
    title: str
    points: list[str]

    def prompt_messages(self) -> list[Any]:
        return [f"{self.title}: {', '.join(self.points)}"]


@dataclasses.dataclass
class Note:
    title: str
    points: list[str]


def saying(name: str, *turns: Any, **fields: Any) -> AgentSpec:
    """Create an agent that answers with these turns, or with its name."""
    return agent(name, script(*(turns or (f"{name}'s",))), **fields)


def asked(spec: AgentSpec) -> list[str]:
    """Return the prompts that an agent received."""
    return [item.prompt for item in spec.model.asked]  # type: ignore[union-attr]


def flow_project(
    flow: FlowSpec,
    *others: AgentSpec | FlowSpec,
    entry: Callable[..., Any] | str | None = None,
    budget: dict[str, Any] | None = None,
    hooks: Sequence[Any] = (),
    **settings: Any,
) -> Project:
    """Create a project whose entry is the flow, or `entry`."""
    names = {flow.name: Registered(flow.name, "flow", flow)}
    for item in others:
        names[item.name] = Registered(item.name, "agent" if isinstance(item, AgentSpec) else "flow", item)
    if budget is not None:
        settings["budget"] = Budget(**budget)
    declared = EntrySpec("flow", flow.name)
    if callable(entry):
        declared = EntrySpec("function", "main", entry)
    elif entry is not None:
        declared = EntrySpec("agent", entry)
    return Project(Path(__file__).parent, declared, Registry(names), settings=RuntimeSettings(**settings), hooks=hooks)


def flow_runtime(
    flow: FlowSpec, *others: AgentSpec | FlowSpec, approvals: Any = "approve_all", **fields: Any
) -> Runtime:
    """Create a runtime for such a project that approves every request."""
    return Runtime(flow_project(flow, *others, **fields), approvals=approvals)


def finish(runtime: Runtime, input: Any = "go", **options: Any) -> RunResult:
    """Run to the end, within a minute, and return the result however it ended."""

    async def within() -> RunResult:
        return await asyncio.wait_for(runtime.execute(input, **options), 60)

    return asyncio.run(within())


def run_flow(flow: FlowSpec, input: Any = "go", *others: AgentSpec | FlowSpec, **fields: Any) -> RunResult:
    """Run a flow and return the result however it ended."""
    return finish(flow_runtime(flow, *others, **fields), input)


def outline(runtime: Runtime, input: Any = "go") -> list[str]:
    """Return the events of a run, one line each."""
    log = heard(runtime)
    finish(runtime, input)
    assert [event.seq for event in log.events] == list(range(len(log.events)))
    return log.outline


def streamed(runtime: Runtime, input: Any = "go") -> list[str]:
    """Return the events of a streamed run, without pieces of text."""
    log = Heard()

    async def read() -> None:
        async for event in runtime.stream(input):
            log.events.append(event)

    asyncio.run(read())
    assert [event.seq for event in log.events] == list(range(len(log.events)))
    return [line for line in log.outline if not line.startswith("text ")]


def text_of(result: RunResult) -> Any:
    """Return the output of a completed run."""
    assert result.error is None, result.error
    return result.output
