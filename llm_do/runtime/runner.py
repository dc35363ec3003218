"""`run`: shortcuts for `Runtime`. `run(...)` is async, `run.sync(...)` blocks, `run.stream(...)` yields events."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias, Unpack, cast

from pydantic_ai import Agent
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider

from llm_do.concurrency.event_loops import require_event_loop, run_blocking
from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.project.project import EntrySpec, Project
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.agents.spec_faults import check_spec
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.run_stream import RunStream
from llm_do.runtime.runtime import Runtime
from llm_do.runtime.session.project_session import check_names
from llm_do.runtime.session.run_options import EntryOptions, RunOptions, RuntimeOptions, check_options

__all__ = ["Runnable", "Runner", "run"]

Runnable: TypeAlias = "Project | AgentSpec | FlowSpec | Agent[Any, Any] | str | Path"
"""What can be run: a project, its path, an agent or flow declaration, or a PydanticAI agent."""


class Runner:
    """Runs a project, a path to one, an agent or flow declaration, or a PydanticAI agent.

    Example:
        >>> result = run.sync(AgentSpec("echo", model="test"), "Hello")
        >>> result.status
        'completed'
    """

    async def __call__(self, target: Runnable, input: object = None, **options: Unpack[RunOptions]) -> RunResult:
        """Run `target` and return its result.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: The keys of `RunOptions`, by name.

        Returns:
            The result.

        Raises:
            LinkError: The project doesn't link.
            InputError: The input doesn't fit.
            RunError: The run ended early.
        """
        require_event_loop()
        runtime, call = _open(target, options)
        try:
            return await runtime.run(input, **call)
        finally:
            await runtime.aclose()

    def sync(self, target: Runnable, input: object = None, **options: Unpack[RunOptions]) -> RunResult:
        """Run `target` from synchronous code; works inside a running event loop too.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: As for `run`.

        Returns:
            The result.
        """
        return run_blocking(lambda: self(target, input, **options))

    def stream(self, target: Runnable, input: object = None, **options: Unpack[RunOptions]) -> RunStream:
        """Run `target` and iterate over its events.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: As for `run`.

        Returns:
            An async iterable of events; its `result` is set when the run has ended.
        """
        runtime, call = _open(target, options)
        return RunStream(lambda subscription: runtime.execute(input, **call, subscription=subscription), runtime.aclose)


def _open(target: Runnable, options: RunOptions) -> tuple[Runtime, EntryOptions]:
    """Return a session for one run of a target, and the options of the run itself."""
    check_options("run", options, RunOptions.__annotations__)
    spec = _agent_spec(target)
    if spec is not None:
        check_names("agent", [spec.name])
        check_spec(spec)
        registry = Registry({spec.name: Registered(spec.name, "agent", spec)})
        project = Project(Path.cwd(), EntrySpec("agent", spec.name), registry)
    elif isinstance(target, FlowSpec):
        registry = Registry({target.name: Registered(target.name, "flow", target), **_agents_of(target)})
        project = Project(Path.cwd(), EntrySpec("flow", target.name), registry)
    elif isinstance(target, Project):
        project = target
    elif isinstance(target, str | os.PathLike):
        project = Project.load(Path(target), env_file=options.get("env_file"))
    else:
        raise UsageError(
            f"cannot run a value of type {type(cast('object', target)).__name__}",
            hint="Pass a project, its path, an AgentSpec, a flow or a PydanticAI agent.",
        )
    deps = _dependencies(target, options)
    session = {name: value for name, value in options.items() if name in RuntimeOptions.__annotations__}
    session["model"] = _model(options.get("model"), options.get("provider"))
    runtime = Runtime(project, **cast("RuntimeOptions", session))
    if spec is not None and isinstance(target, Agent):
        runtime.builder.adopt(spec, target, deps)
    call = {name: value for name, value in options.items() if name in EntryOptions.__annotations__}
    if isinstance(target, Agent):
        call.pop("deps", None)
    return runtime, cast("EntryOptions", call)


def _dependencies(target: Runnable, options: RunOptions) -> tuple[object] | None:
    """Return what a PydanticAI agent's tools get as `ctx.deps`, in a tuple; None for the `CallContext`."""
    if not isinstance(target, Agent):
        return None
    if "deps" in options:
        return (options["deps"],)
    kind: object = target.deps_type
    if kind in (object, NoneType, CallContext, Any):
        return None
    name = getattr(kind, "__name__", str(kind))
    raise UsageError(f"the agent has dependencies of type {name}, and there are none", hint="Pass them as `deps=`.")


def _agents_of(flow: FlowSpec) -> dict[str, Registered]:
    """Return a flow's members by name, so that they can refer to each other."""
    members = {name: as_member(flow, name, {}) for name in flow.members if name != flow.name}
    return {name: member for name, member in members.items() if member is not None}


def _agent_spec(target: Runnable) -> AgentSpec | None:
    """Return the declaration of a single agent, or None for other targets."""
    if isinstance(target, AgentSpec):
        return target
    if isinstance(target, Agent):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", target.name or "agent")
        name = name[:64] if name[0].isalpha() else f"_{name}"[:64]
        return AgentSpec(name, model=target.model, output_type=target.output_type)
    return None


def _model(
    model: str | Sequence[str] | Model | None, provider: Provider[Any] | Model | None
) -> str | Sequence[str] | Model | None:
    if provider is None:
        return model
    if isinstance(provider, Model):
        return provider
    if not isinstance(model, str):
        raise UsageError("a provider needs the name of its model", hint="Pass model='provider:name' with provider=.")
    name = model if ":" in model else f"{provider.name}:{model}"
    return infer_model(name, provider_factory=lambda _: provider)


run = Runner()
"""Run a project, a path to one, an agent or flow declaration, or a PydanticAI agent.

`await run(...)`, or `run.sync(...)`, or `run.stream(...)`.
"""
