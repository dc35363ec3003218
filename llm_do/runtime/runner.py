"""`run`: the one-liners over `Runtime`. `run(...)` is async, `run.sync(...)` blocks, `run.stream(...)` shows events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, Unpack, cast

from pydantic_ai import Agent
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider

from llm_do.concurrency.event_loops import run_blocking
from llm_do.errors import UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.project.project import EntrySpec, Project
from llm_do.project.registry import Registered, Registry
from llm_do.runtime.approval.broker import ApprovalCallback, ApprovalMode, RunApprovalPolicy
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.record.run_stream import RunStream
from llm_do.runtime.runtime import Conversation, Runtime

__all__ = ["Runnable", "Runner", "RunnerArguments", "run"]

Runnable: TypeAlias = "Project | AgentSpec | FlowSpec | Agent[Any, Any] | str | Path"
"""What can be run: a project, a path of one, an agent's or a flow's declaration, or a PydanticAI agent."""


class RunnerArguments(Conversation, total=False):
    """What `run` takes besides what to run and its input; a `Conversation` is part of it.

    Args:
        model: A model for every agent.
        provider: A PydanticAI provider, with `model` the name of its model; or a model.
        approvals: A mode, an async callback, or a policy; None takes the project's mode.
        max_retries: Retries of a model request; None takes the project's.
        loop_threshold: Identical batches of tool calls that end a run; None takes the project's.
        max_steps: Model requests in one agent run.
    """

    model: str | Sequence[str] | Model | None
    provider: Provider[Any] | Model | None
    approvals: ApprovalMode | ApprovalCallback | RunApprovalPolicy | None
    max_retries: int | None
    loop_threshold: int | None
    max_steps: int | None


_OPTIONS = sorted(RunnerArguments.__annotations__)


class Runner:
    """Runs a project, a path of one, an agent's or a flow's declaration, or a PydanticAI agent.

    Example:
        >>> result = run.sync(AgentSpec("echo", model="test"), "Hello")
        >>> result.status
        'completed'
    """

    async def __call__(self, target: Runnable, input: object = None, **options: Unpack[RunnerArguments]) -> RunResult:
        """Run `target` and return its result.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: What `RunnerArguments` has, by name.

        Returns:
            The result.

        Raises:
            LinkError: The project doesn't link.
            InputError: The input doesn't fit.
            RunError: The run ended early.
        """
        runtime, conversation = _begun(target, **options)
        try:
            return await runtime.run(input, **conversation)
        finally:
            await runtime.aclose()

    def sync(self, target: Runnable, input: object = None, **options: Unpack[RunnerArguments]) -> RunResult:
        """`run` for code that isn't async; works inside a running event loop too.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: As for `run`.

        Returns:
            The result.
        """
        return run_blocking(lambda: self(target, input, **options))

    def stream(self, target: Runnable, input: object = None, **options: Unpack[RunnerArguments]) -> RunStream:
        """The same run, seen as its events.

        Args:
            target: What to run.
            input: Text, a mapping, or an input model.
            options: As for `run`.

        Returns:
            An async iterable of events, with the `result` once it has ended.
        """
        runtime, conversation = _begun(target, **options)
        return RunStream(
            lambda subscription: runtime.execute(input, **conversation, subscription=subscription), runtime.aclose
        )


def _begun(
    target: Runnable,
    *,
    model: str | Sequence[str] | Model | None = None,
    provider: Provider[Any] | Model | None = None,
    approvals: ApprovalMode | ApprovalCallback | RunApprovalPolicy | None = None,
    max_retries: int | None = None,
    loop_threshold: int | None = None,
    max_steps: int | None = None,
    **conversation: Unpack[Conversation],
) -> tuple[Runtime, Conversation]:
    """A session for one run of a target, and what is said of the conversation."""
    for name in conversation:
        if name not in Conversation.__annotations__:
            raise TypeError(f"run has no option {name!r}; options are {', '.join(_OPTIONS)}")
    spec = _declared(target)
    if spec is not None:
        registry = Registry({spec.name: Registered(spec.name, "agent", spec)})
        project = Project(Path.cwd(), EntrySpec("agent", spec.name), registry)
    elif isinstance(target, FlowSpec):
        registry = Registry({target.name: Registered(target.name, "flow", target), **_agents_of(target)})
        project = Project(Path.cwd(), EntrySpec("flow", target.name), registry)
    elif isinstance(target, Project):
        project = target
    elif isinstance(target, str | os.PathLike):
        project = Project.load(Path(target))
    else:
        raise UsageError(
            f"{type(cast('object', target)).__name__} is nothing that can be run",
            hint="Run a project, a path of one, an AgentSpec, a flow, or a PydanticAI agent.",
        )
    runtime = Runtime(
        project,
        approvals=approvals,
        model=_model(model, provider),
        max_retries=max_retries,
        loop_threshold=loop_threshold,
        max_steps=max_steps,
    )
    if spec is not None and isinstance(target, Agent):
        runtime.builder.adopt(spec, target)
    return runtime, conversation


def _agents_of(flow: FlowSpec) -> dict[str, Registered]:
    """The members of a flow by name, so that they find each other when one lists another's."""
    members = {name: as_member(flow, name, {}) for name in flow.members if name != flow.name}
    return {name: member for name, member in members.items() if member is not None}


def _declared(target: Runnable) -> AgentSpec | None:
    """The declaration of an agent that is run by itself."""
    if isinstance(target, AgentSpec):
        return target
    if isinstance(target, Agent):
        return AgentSpec(target.name or "agent", model=target.model, output_type=target.output_type)
    return None


def _model(
    model: str | Sequence[str] | Model | None, provider: Provider[Any] | Model | None
) -> str | Sequence[str] | Model | None:
    if provider is None:
        return model
    if isinstance(provider, Model):
        return provider
    if not isinstance(model, str):
        raise UsageError("a provider needs the name of its model", hint="Pass model='provider:name' besides provider=.")
    name = model if ":" in model else f"{provider.name}:{model}"
    return infer_model(name, provider_factory=lambda _: provider)


run = Runner()
"""Run a project, a path of one, an agent's or a flow's declaration, or a PydanticAI agent.

`await run(...)`, or `run.sync(...)`, or `run.stream(...)`.
"""
