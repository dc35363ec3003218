"""Workflows: steps run in sequence, members of a group in parallel; each step's output is the next one's input."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from llm_do._startup.frozen import frozen
from llm_do.concurrency.gathering import gather_in_order
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import BudgetError, InputError, LlmDoError, RunError
from llm_do.flows.step import run_step
from llm_do.flows.step_input import private_copy
from llm_do.formats.syntax.flow_expression import FlowTree, Parallel, Reference, Serial, format_flow
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.record.results import output_text
from llm_do.runtime.session.entries import entry_error
from llm_do.runtime.toolcall.tool_call import ENDS_RUN

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["MemberFailure", "Workflow"]


@frozen
class MemberFailure:
    """Takes the place of a failed parallel member's output if `on_error` is `collect`.

    Args:
        name: The member's name, or its expression.
        error: Why it failed.
    """

    name: str
    error: Exception

    def __str__(self) -> str:
        reason = self.error.message if isinstance(self.error, LlmDoError) else str(self.error)
        return f"{self.name} failed: {reason}"


class Workflow:
    """One run of one workflow.

    Args:
        flow: The flow.
        ctx: Its call.
    """

    def __init__(self, flow: FlowSpec, ctx: CallContext) -> None:
        self.flow = flow
        self.ctx = ctx
        # One semaphore for the flow, so that nested groups together don't exceed its limit.
        self._slots = asyncio.Semaphore(flow.max_concurrency) if flow.max_concurrency is not None else nullcontext()

    async def run(self, input: BaseModel) -> Any:
        """Run all steps."""
        steps = self.flow.steps
        series = steps if isinstance(steps, Serial) else Serial((steps,))
        turn = self.ctx.frame.turn
        try:
            return await self._serial(series, input, "", turn.history, turn.messages)
        finally:
            if not turn.messages:
                turn.messages.extend(turn.history)

    async def _run(
        self,
        tree: FlowTree,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool,
    ) -> Any:
        if isinstance(tree, Reference):
            return await self._step(tree.name, value, position, history, messages, first=first)
        if isinstance(tree, Serial):
            return await self._serial(tree, value, position, history, messages, first=first)
        return await self._parallel(tree, value, position, history, messages, first=first)

    async def _serial(
        self,
        tree: Serial,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool = True,
    ) -> Any:
        for number, step in enumerate(tree.steps, 1):
            added: list[ModelMessage] = []
            is_first = first and number == 1
            try:
                value = await self._run(step, value, f"{position}{number}/", history, added, first=is_first)
            finally:
                # A step that adds no messages, such as a function, leaves the conversation to the next one.
                if added and added != [*history]:
                    messages.extend(added)
                    history = ()
        return value

    async def _parallel(
        self,
        tree: Parallel,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool,
    ) -> Any:
        """Run members in parallel, each with a copy of the input, and join their outputs in declared order."""
        added: list[list[ModelMessage]] = [[] for _ in tree.members]

        def work(index: int, member: FlowTree) -> Any:
            return lambda: self._run(member, private_copy(value), position, history, added[index], first=first)

        try:
            outcomes = await gather_in_order(
                [work(index, member) for index, member in enumerate(tree.members)],
                ends=self._ends,
            )
        finally:
            # Each of them received the conversation so far; it is added only once.
            for each in added:
                messages.extend(each[len(history) :] if messages else each)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if len(failures) == len(outcomes):
            raise failures[0]
        return await self._join(tree, outcomes)

    def _ends(self, error: BaseException) -> bool:
        """Check whether a member's failure cancels the others: always if it ends the run, else as `on_error` says."""
        ends = isinstance(error, (*ENDS_RUN, BudgetError)) or not isinstance(error, Exception)
        return ends or self.flow.on_error == "cancel"

    async def _join(self, tree: Parallel, outcomes: list[Any]) -> Any:
        outputs = [
            MemberFailure(format_flow(member), outcome) if isinstance(outcome, Exception) else outcome
            for member, outcome in zip(tree.members, outcomes, strict=True)
        ]
        aggregate = self.flow.aggregate
        if aggregate is None:
            return self.flow.separator.join(
                str(output) if isinstance(output, MemberFailure) else output_text(output) for output in outputs
            )
        try:
            return await call_function(aggregate, outputs)
        except LlmDoError:
            raise
        except BaseException as error:
            reraise_if_cancelled(error)
            raise entry_error(f"the aggregate of flow {self.flow.name!r}", error, self.ctx) from error

    async def _step(
        self,
        name: str,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool,
    ) -> Any:
        ctx = self.ctx
        found = as_member(self.flow, name, ctx.runtime.registry)
        if found is None:
            raise RunError(
                f"flow {self.flow.name!r} has a step {name!r}, which is not an agent, function or flow",
                hint="Register it, or list the object among the flow's `agents`.",
                agent_path=ctx.path,
            )
        try:
            async with self._slots:
                return await run_step(ctx, found, value, position, history, messages)
        except InputError as error:
            if first:
                raise
            raise RunError(
                f"{name} can't take the output of the previous step: {error.message}",
                hint=error.hint,
                agent_path=f"{ctx.path}/{position}{name}",
            ) from error
