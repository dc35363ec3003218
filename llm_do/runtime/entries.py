"""Entries: what a run begins with. An entry is trusted code under a `NullModel`: it can only call others."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict

from llm_do.errors import EntryError, LlmDoError
from llm_do.project.agents import AgentSpec
from llm_do.project.inputs import AgentArgs, PromptInput
from llm_do.runtime.call import CallScope
from llm_do.runtime.context import CURRENT_CALL, CallContext
from llm_do.runtime.dispatch import agent_context
from llm_do.runtime.hooks import HookAbort
from llm_do.runtime.start import run_agent

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["AgentEntry", "Entry", "FunctionEntry", "NamedEntry"]


class AnyInput(AgentArgs):
    """Input whose shape is checked elsewhere."""

    model_config = ConfigDict(extra="allow")


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


@dataclass(frozen=True, eq=False)
class AgentEntry:
    """Runs an agent at depth 1, with the session's history.

    Args:
        spec: The agent.
        history: The conversation so far.
        messages: Where the agent's own history is put when it ends.
    """

    spec: AgentSpec
    history: Sequence[ModelMessage] = ()
    messages: list[ModelMessage] = field(default_factory=list["ModelMessage"])

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
            The agent's output.
        """
        child = agent_context(ctx, self.spec, input, call_id=f"{ctx.call_id}.1")
        try:
            return await run_agent(child, ctx.runtime.builder.built(self.spec), nested=False, history=self.history)
        finally:
            self.messages[:] = child.frame.messages
            ctx.frame.usage += child.frame.usage
            ctx.frame.text = child.frame.text


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
                except Exception as error:
                    file, line = _place(error, ctx.project.root)
                    raise EntryError(
                        f"{self.name} raised {type(error).__name__}: {error}",
                        hint="--debug shows the traceback.",
                        file=file,
                        line=line,
                        agent_path=ctx.path,
                    ) from error
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
        """
        return await ctx.call(self.name, input.model_dump())


def _place(error: BaseException, root: Path) -> tuple[str | None, int | None]:
    """The deepest line of the project's own files that an exception came through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix(), frame.lineno
    return None, None
