"""Workflows: steps run in sequence, members of a group in parallel; each step's output is the next one's input.

Conditional and repeated steps only choose what runs next: their conditions are pure, so that a resumed run, in which
each step has the output that it had, makes the same choices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel

from llm_do._startup.frozen import frozen
from llm_do.concurrency.gathering import gather_in_order
from llm_do.concurrency.run_end import reraise_if_cancelled
from llm_do.concurrency.worker_threads import call_function
from llm_do.errors import BudgetError, InputError, LimitError, LlmDoError, RunError
from llm_do.flows.joined import JoinedText, MemberFailure
from llm_do.flows.step import run_step
from llm_do.flows.step_input import plain_input, private_copy
from llm_do.formats.syntax.condition import ConditionError, evaluate, is_true
from llm_do.formats.syntax.flow_expression import (
    Condition,
    FlowTree,
    ForEach,
    Parallel,
    Reference,
    Repeat,
    Serial,
    format_flow,
)
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.session.entries import entry_error
from llm_do.runtime.toolcall.tool_call import ENDS_RUN
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

__all__ = ["Workflow"]


@frozen
class _Branch:
    """What runs beside others: its steps, its input, its position, and its name for messages."""

    tree: FlowTree
    value: Any
    position: str
    name: str


_NOUNS: dict[type, str] = {type(None): "null", str: "text", dict: "an object", bool: "a truth value"}


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
        if isinstance(tree, Parallel):
            return await self._parallel(tree, value, position, history, messages, first=first)
        if isinstance(tree, ForEach):
            return await self._for_each(tree, value, position, history, messages)
        if isinstance(tree, Repeat):
            return await self._repeat(tree, value, position, history, messages, first=first)
        taken = tree.then if is_true(self._evaluate(tree.when, value, position)) else tree.other
        if taken is None:
            return plain_input(value)
        return await self._run(taken, value, position, history, messages, first=first)

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
        branches = [_Branch(member, value, position, format_flow(member)) for member in tree.members]
        return await self._side_by_side(branches, self.flow.on_error, len(branches), history, messages, first=first)

    async def _for_each(
        self,
        tree: ForEach,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
    ) -> Any:
        """Run the body for each item of a list, and join the outputs in the order of the items."""
        items = self._evaluate(tree.items, value, position)
        where = f"{self.ctx.path}/{position.rstrip('/')}"
        if not isinstance(items, list):
            raise RunError(
                f"flow {self.flow.name!r} needs a list for `for_each`, and `{tree.items.text}` is "
                f"{_NOUNS.get(type(cast('object', items)), 'something else')}",
                hint="Check the output of the step before, or name another field.",
                agent_path=where,
            )
        items = cast("list[Any]", items)
        if len(items) > tree.at_most:
            raise LimitError(
                f"`{tree.items.text}` has {len(items)} items, and the step of flow {self.flow.name!r} takes "
                f"{tree.at_most}",
                hint="Raise `at_most` of the step, or filter the list in its expression.",
                agent_path=where,
            )
        branches = [
            _Branch(tree.body, item, f"{position}{number}/", f"item {number}") for number, item in enumerate(items, 1)
        ]
        return await self._side_by_side(branches, tree.on_error, tree.concurrency, history, messages, first=False)

    async def _side_by_side(
        self,
        branches: Sequence[_Branch],
        on_error: Literal["cancel", "collect"],
        at_once: int,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool,
    ) -> Any:
        added: list[list[ModelMessage]] = [[] for _ in branches]
        slots = asyncio.Semaphore(max(at_once, 1))

        async def run(branch: _Branch, added: list[ModelMessage]) -> Any:
            async with slots:
                value = private_copy(branch.value)
                return await self._run(branch.tree, value, branch.position, history, added, first=first)

        def ends(error: BaseException) -> bool:
            """Check whether a failure cancels the other branches: always if it ends the run."""
            ended = isinstance(error, (*ENDS_RUN, BudgetError)) or not isinstance(error, Exception)
            return ended or on_error == "cancel"

        try:
            jobs = [partial(run, branch, each) for branch, each in zip(branches, added, strict=True)]
            outcomes = await gather_in_order(jobs, ends=ends) if jobs else []
        finally:
            # Each of them received the conversation so far; it is added only once.
            for each in added:
                messages.extend(each[len(history) :] if messages else each)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures and len(failures) == len(outcomes):
            raise failures[0]
        return await self._join(branches, outcomes)

    async def _repeat(
        self,
        tree: Repeat,
        value: Any,
        position: str,
        history: Sequence[ModelMessage],
        messages: list[ModelMessage],
        *,
        first: bool,
    ) -> Any:
        """Run the body, each time with its last output, until the condition is true."""
        for number in range(1, tree.at_most + 1):
            added: list[ModelMessage] = []
            is_first = first and number == 1
            try:
                value = await self._run(tree.body, value, f"{position}{number}/", history, added, first=is_first)
            finally:
                if added and added != [*history]:
                    messages.extend(added)
                    history = ()
            if is_true(self._evaluate(tree.until, value, position)):
                return value
        times = "once" if tree.at_most == 1 else f"{tree.at_most} times"
        raise LimitError(
            f"flow {self.flow.name!r} ran `{format_flow(tree.body)}` {times}, and `{tree.until.text}` "
            "is still not true",
            hint="Raise `at_most` of the step, or check what the step answers.",
            agent_path=f"{self.ctx.path}/{position.rstrip('/')}",
        )

    def _evaluate(self, condition: Condition, value: Any, position: str) -> Any:
        """Evaluate an expression about the output of the step before."""
        value = plain_input(value)
        outputs = to_json_data(value.as_list()) if isinstance(value, JoinedText) else None
        try:
            return evaluate(condition.text, to_json_data(value), outputs)
        except ConditionError as error:
            raise RunError(
                f"flow {self.flow.name!r} can't evaluate `{condition.text}`: {error}",
                hint="Check the expression against the output of the step before.",
                agent_path=f"{self.ctx.path}/{position.rstrip('/')}",
            ) from error

    async def _join(self, branches: Sequence[_Branch], outcomes: list[Any]) -> Any:
        outputs = [
            MemberFailure(branch.name, outcome) if isinstance(outcome, Exception) else outcome
            for branch, outcome in zip(branches, outcomes, strict=True)
        ]
        aggregate = self.flow.aggregate
        if aggregate is None:
            return JoinedText.of(outputs, self.flow.separator)
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
