"""Entries: what a run begins with. An entry is trusted code under a `NullModel`: it can only call others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from llm_do.errors import EntryError, LlmDoError
from llm_do.project.agents import AgentSpec
from llm_do.project.inputs import AnyInput, PromptInput
from llm_do.runtime.call import CallScope
from llm_do.runtime.chains import Chain, find_target
from llm_do.runtime.context import CURRENT_CALL, CallContext
from llm_do.runtime.flow_turn import FlowTurn, run_flow
from llm_do.runtime.hooks import HookAbort
from llm_do.runtime.places import project_place

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.project.flows import FlowSpec
    from llm_do.project.registry import Registry

__all__ = ["AgentEntry", "Entry", "FlowEntry", "FunctionEntry", "NamedEntry", "raised_by"]


class Entry(Protocol):
    """What a run begins with."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def input_model(self) -> type[BaseModel]:
        """What it takes."""
        ...

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Do the work."""
        ...


@dataclass(eq=False)
class AgentEntry:
    """Runs an agent at depth 1, with the session's history.

    Args:
        spec: The agent.
        history: The conversation so far.
        messages: Where the conversation is put when it ends.
        active: The agent that control was handed over to: in the last run when it begins, in this one when it ends.
    """

    spec: AgentSpec
    history: Sequence[ModelMessage] = ()
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    active: str | None = None

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    @property
    def input_model(self) -> type[BaseModel]:
        """What the agent takes."""
        return self.spec.input_model or PromptInput

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Run the agent.

        Args:
            input: The validated input.
            ctx: The entry's context.

        Returns:
            The agent's output, or that of the agent it handed over to.
        """
        in_control = find_target(ctx, self.active, self.spec) if self.active is not None else None
        chain = Chain(ctx, f"{ctx.call_id}.1", nested=False, messages=self.messages, toolkits=ctx.run.toolkits)
        try:
            return await chain.run(in_control or self.spec, input, self.history)
        finally:
            self.active = chain.agent if chain.agent != self.spec.name else None


@dataclass(eq=False)
class FlowEntry:
    """Runs a flow, its steps at depth 1, with the session's history.

    Args:
        flow: The flow.
        registry: Every name that it may refer to.
        history: The conversation so far.
        messages: Where the histories of the steps are put when it ends, one after the other.
        active: The agent in control: of the last run when it begins, of this one when it ends.
    """

    flow: FlowSpec
    registry: Registry
    history: Sequence[ModelMessage] = ()
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])
    active: str | None = None

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.name

    @property
    def input_model(self) -> type[BaseModel]:
        """What the flow takes."""
        return self.flow.input_model(self.registry)

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Run the flow.

        Args:
            input: The validated input.
            ctx: The entry's context.

        Returns:
            The flow's output.
        """
        token = CURRENT_CALL.set(ctx)
        turn = FlowTurn(ctx, self.history, self.messages, self.active)
        try:
            async with CallScope(ctx, nested=False) as scope:
                scope.output = await run_flow(self.flow, input, turn)
                return scope.output
        finally:
            self.active = turn.active
            CURRENT_CALL.reset(token)


@dataclass(frozen=True, eq=False)
class FunctionEntry:
    """Runs a Python function `(input, ctx)`, sync or async.

    Args:
        function: The function.
        name: What it is called.
        input_model: What it takes; None is `PromptInput`.
    """

    function: Callable[..., Any]
    name: str = ""
    model: type[BaseModel] | None = None

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", "main"))

    @property
    def input_model(self) -> type[BaseModel]:
        """What the function takes."""
        return self.model or PromptInput

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Call the function; its own exceptions become an `EntryError` that says where.

        Args:
            input: The validated input.
            ctx: The entry's context.

        Returns:
            What the function returns.

        Raises:
            EntryError: It raised.
        """
        token = CURRENT_CALL.set(ctx)
        try:
            async with CallScope(ctx, nested=False) as scope:
                try:
                    if inspect.iscoroutinefunction(self.function):
                        scope.output = await self.function(input, ctx)
                    else:
                        scope.output = await ctx.runtime.in_thread(self.function, input, ctx)
                        if inspect.isawaitable(scope.output):
                            scope.output = await scope.output
                except (LlmDoError, HookAbort):
                    raise
                except (Exception, SystemExit) as error:
                    raise raised_by(self.name, error, ctx) from error
                return scope.output
        finally:
            CURRENT_CALL.reset(token)


@dataclass(frozen=True, eq=False)
class NamedEntry:
    """Calls an exported function by its registered name, with the arguments its parameters take.

    Args:
        name: The name.
    """

    name: str

    @property
    def input_model(self) -> type[BaseModel]:
        """Anything: the function's own schema checks it."""
        return AnyInput

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Call it.

        Args:
            input: The arguments.
            ctx: The entry's context.

        Returns:
            What it returns.

        Raises:
            EntryError: It raised.
        """
        try:
            return await ctx.call(self.name, input.model_dump())
        except (LlmDoError, HookAbort):
            raise
        except (Exception, SystemExit) as error:
            raise raised_by(self.name, error, ctx) from error


def raised_by(name: str, error: BaseException, ctx: CallContext) -> EntryError:
    """What an exception of the project's own code is called.

    Args:
        name: What raised it.
        error: The exception.
        ctx: The call it came out of.
    """
    file, line = project_place(error, ctx.project.root)
    return EntryError(
        f"{name} raised {type(error).__name__}: {error}",
        hint="--debug shows the traceback.",
        file=file,
        line=line,
        agent_path=ctx.path or name,
    )
