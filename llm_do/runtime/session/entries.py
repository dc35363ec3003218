"""Entries: what a run starts with. An entry is a call at depth 0: trusted code under a `NullModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.errors import EntryError, InputError, LlmDoError, UsageError
from llm_do.project.agent_spec import AgentSpec
from llm_do.project.faults import project_error
from llm_do.project.functions import input_annotation
from llm_do.project.inputs import AnyInput, PromptInput, describe_input, to_input
from llm_do.project.registry import Registered, callable_names
from llm_do.runtime.call.call_scope import CallScope, CallSite, input_data
from llm_do.runtime.call.function_call import call_code
from llm_do.runtime.call.handoff_chain import HandoffChain, find_target
from llm_do.runtime.call.invocation import run_flow
from llm_do.runtime.context.call_context import CallContext
from llm_do.text.words import which_name

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from llm_do.project.flow_spec import FlowSpec
    from llm_do.project.project import Project
    from llm_do.project.registry import Registry

__all__ = [
    "AgentEntry",
    "ConversationEntry",
    "Entry",
    "FlowEntry",
    "FunctionEntry",
    "NamedEntry",
    "entry_error",
    "entry_for",
    "entry_input",
    "nothing_to_run",
]


@runtime_checkable
class Entry(Protocol):
    """What a run starts with."""

    @property
    def name(self) -> str:
        """The entry's name."""
        ...

    @property
    def input_model(self) -> type[BaseModel]:
        """The entry's input model."""
        ...

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Do the work."""
        ...


@dataclass(frozen=True, eq=False)
class AgentEntry:
    """Runs an agent at depth 1, with the conversation's history.

    Args:
        spec: The agent.
        history: The conversation so far.
        active: Name of the agent that got control in the last run through a handoff; None for the agent itself.
    """

    spec: AgentSpec
    history: Sequence[ModelMessage] = ()
    active: str | None = None

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    @property
    def input_model(self) -> type[BaseModel]:
        """The agent's input model."""
        return self.spec.input_model or PromptInput

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Run the agent.

        Args:
            input: The validated input.
            ctx: The entry's context.

        Returns:
            The agent's output, or that of the agent it handed control to.
        """
        turn = ctx.frame.begin_turn(self.history, self.active)
        in_control = find_target(ctx.runtime.registry, self.active, self.spec) if self.active is not None else None
        chain = HandoffChain(ctx, CallSite("1"), turn)
        try:
            return await chain.run(in_control or self.spec, input)
        finally:
            if chain.agent:
                turn.active = chain.agent if chain.agent != self.spec.name else None


@dataclass(frozen=True, eq=False)
class FlowEntry:
    """Runs a flow, its steps at depth 1, with the conversation's history.

    Args:
        flow: The flow.
        registry: Every name that it may refer to.
        history: The conversation so far.
        active: The agent in control at the end of the last run.
    """

    flow: FlowSpec
    registry: Registry
    history: Sequence[ModelMessage] = ()
    active: str | None = None

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.name

    @property
    def input_model(self) -> type[BaseModel]:
        """The flow's input model."""
        return self.flow.input_model(self.registry)

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Run the flow."""
        ctx.frame.begin_turn(self.history, self.active)
        async with CallScope(ctx, listed=False) as scope:
            return await scope.returns(await run_flow(self.flow, input, ctx))


ConversationEntry: TypeAlias = AgentEntry | FlowEntry
"""The entries that continue a conversation and return one."""


@dataclass(frozen=True, eq=False)
class FunctionEntry:
    """Runs a Python function `(input, ctx)`, sync or async.

    Args:
        function: The function.
        name: Its name.
        input_model: Its input model.
    """

    function: Callable[..., Any]
    name: str = ""
    input_model: type[BaseModel] = PromptInput

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", "main"))

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Call the function; its own exceptions become an `EntryError` with their location.

        Args:
            input: The validated input.
            ctx: The entry's context.

        Returns:
            The function's return value.

        Raises:
            EntryError: The function raised an exception.
        """
        async with CallScope(ctx, listed=False) as scope:
            try:
                output = await call_code(self.function, self._argument(input), ctx)
            except LlmDoError:
                raise
            except BaseException as error:
                reraise_if_cancelled(error)
                raise entry_error(self.name, error, ctx) from error
            return await scope.returns(output, self.function)

    def _argument(self, input: BaseModel) -> object:
        """The input as the function takes it: as text, if its parameter is annotated with `str`."""
        try:
            annotation = input_annotation(self.function)
        except (StopIteration, TypeError, ValueError):
            return input  # the call itself says what is wrong
        return input.input if annotation is str and isinstance(input, PromptInput) else input


@dataclass(frozen=True, eq=False)
class NamedEntry:
    """Calls an exported function by its registered name, with the input's fields as arguments.

    Args:
        name: The name.
    """

    name: str

    @property
    def input_model(self) -> type[BaseModel]:
        """Any fields; the function's own schema validates them."""
        return AnyInput

    async def run(self, input: BaseModel, ctx: CallContext) -> Any:
        """Call the function."""
        fields = input.model_dump()
        # A caller's text has become `{"input": text}`; the parameter that takes it may have another name.
        is_text = fields.keys() == {"input"} and isinstance(fields["input"], str)
        try:
            return await ctx.call(self.name, fields["input"] if is_text else fields)
        except LlmDoError:
            raise
        except BaseException as error:
            reraise_if_cancelled(error)
            raise entry_error(self.name, error, ctx) from error


def entry_for(
    project: Project, registry: Registry, entry: object, history: list[ModelMessage], active: str | None
) -> Entry:
    """Return the entry of a run: an entry object, a registered name, or the project's own entry."""
    if not isinstance(entry, str | None):
        if isinstance(entry, ConversationEntry):
            return replace(entry, history=history or entry.history, active=active or entry.active)
        if isinstance(entry, Entry):
            return entry
        raise UsageError(
            f"{type(entry).__name__} can't be the entry of a run",
            hint="Pass a name, an `AgentEntry(spec)` or a `FunctionEntry(function)`.",
        )
    declared = project.entry
    if entry is None and declared.kind == "function" and declared.function is not None:
        return FunctionEntry(declared.function, declared.name, declared.input_model or PromptInput)
    name = declared.name if entry is None else entry
    found = registry.get(name)
    if found is not None and found.kind == "agent":
        return AgentEntry(found.value, history, active)
    if found is not None and found.kind == "flow":
        return FlowEntry(found.value, registry, history, active)
    if found is not None and found.kind == "tool":
        return NamedEntry(name)
    raise nothing_to_run(name, registry)


def nothing_to_run(name: str, registry: Mapping[str, Registered]) -> UsageError:
    """The error of a name that can't be run: nothing has it, or a toolset, of which only the tools can be called."""
    known = callable_names(registry)
    return UsageError(
        f"the project has nothing named {name!r} to run"
        + (": that is a toolset, for agents to list" if name in registry else ""),
        hint=which_name(name, known),
    )


async def entry_input(entry: Entry, value: object) -> BaseModel:
    """Validate an entry's input and check that events can show it; None means no fields, if none is required."""
    if value is None:
        if any(info.is_required() for info in entry.input_model.model_fields.values()):
            raise InputError(f"{entry.name} needs an input", hint=f"It takes {describe_input(entry.input_model)}.")
        value = {}
    made = to_input(entry.input_model, value)
    await input_data(made, entry.name)
    return made


def entry_error(name: str, error: BaseException, ctx: CallContext) -> EntryError:
    """Return the error for an exception that the project's own code raised."""
    return project_error(EntryError, f"{name} raised", error, ctx.project.root, agent_path=ctx.path or name)
