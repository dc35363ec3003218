"""Plans: a planner writes a list of tasks, an executor works through it, a synthesiser answers.

The thread's state records each task's progress, so that the same request on the same thread resumes where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from llm_do.errors import LlmDoError, RunError
from llm_do.flows.step import run_step
from llm_do.project.flow_spec import FlowSpec, as_member
from llm_do.project.inputs import PromptInput
from llm_do.project.registry import Registered
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.context.emission import emit
from llm_do.runtime.record.events.tool_events import StateChangedEvent
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text

__all__ = ["Plan", "Task", "run_plan", "tasks_of"]

Status: TypeAlias = Literal["open", "running", "done", "failed"]

KEY = "plans"
"""The key of the thread's state that holds plans, by flow name."""

MAX_TASKS = 50
"""The most tasks that one plan may have."""

_LINE = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]?\]\s*)?(?P<task>\S.*)$", re.MULTILINE)


class Task(TypedDict):
    """One task of a plan, as stored in the thread's state."""

    task: str
    status: Status
    result: str | None


class Plan(TypedDict):
    """A plan, as stored in the thread's state."""

    request: str
    tasks: list[Task]


async def run_plan(flow: FlowSpec, input: BaseModel, ctx: CallContext) -> Any:
    """Plan, execute, synthesise."""
    planner, executor, synthesiser = (_member(flow, name, ctx) for name in flow.agents)
    request = str(getattr(input, "input", None) or input.model_dump_json())
    plan = _find_unfinished(flow, request, ctx)
    if plan is None:
        answer = await _step(ctx, planner, input, "1/")
        plan = Plan(
            request=request, tasks=[Task(task=each, status="open", result=None) for each in tasks_of(answer, ctx)]
        )
        _save(flow, plan, ctx)
    for number, task in enumerate(plan["tasks"], 1):
        if task["status"] == "done":
            continue
        _update(flow, plan, ctx, number, "running", None)
        try:
            result = await _step(ctx, executor, PromptInput(input=_task_prompt(plan, number)), f"2/{number}/")
        except LlmDoError as error:
            _update(flow, plan, ctx, number, "failed", error.message)
            raise
        _update(flow, plan, ctx, number, "done", output_text(result))
    answer = await _step(ctx, synthesiser, PromptInput(input=_report(plan)), "3/")
    _plans(ctx).pop(flow.name, None)
    return answer


def tasks_of(answer: object, ctx: CallContext | None = None) -> list[str]:
    """Extract the tasks from a planner's answer.

    Example:
        >>> tasks_of("First:\\n- [ ] read\\n- [ ] write")
        ['read', 'write']
    """
    data = to_json_data(answer)
    if isinstance(data, Mapping):
        fields = cast("Mapping[str, Any]", data)
        data = next((fields[key] for key in ("items", "tasks", "steps", "todos") if key in fields), None)
    if isinstance(data, str):
        data = [found["task"] for found in _LINE.finditer(data)]
    tasks = [_task(item) for item in cast("list[object]", data)] if isinstance(data, list) else []
    tasks = [task.strip() for task in tasks if task.strip()]
    if not 0 < len(tasks) <= MAX_TASKS:
        raise RunError(
            f"the planner's answer has {len(tasks)} tasks",
            hint=f"A plan needs 1 to {MAX_TASKS}, as an object with `items`, a list of strings, or a Markdown list.",
            agent_path=ctx.path if ctx is not None else None,
        )
    return tasks


def _task(item: object) -> str:
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, object]", item)
        return str(next((fields[key] for key in ("task", "title", "text", "description") if key in fields), ""))
    return str(item)


async def _step(ctx: CallContext, found: Registered, value: object, position: str) -> Any:
    messages: list[Any] = []
    history = ctx.frame.turn.history if position == "1/" else ()
    try:
        return await run_step(ctx, found, value, position, history, messages)
    finally:
        ctx.frame.turn.messages.extend(messages)


def _member(flow: FlowSpec, name: str, ctx: CallContext) -> Registered:
    found = as_member(flow, name, ctx.runtime.registry)
    if found is None:
        raise RunError(
            f"flow {flow.name!r} needs {name!r}, which doesn't exist",
            agent_path=ctx.path,
            hint="name an agent, function or flow of the project; `llm-do graph` lists them",
        )
    return found


def _plans(ctx: CallContext) -> dict[str, Any]:
    state: object = ctx.thread.state
    if not isinstance(state, dict):
        raise RunError(
            "a plan is stored in the thread's state, which isn't an object here",
            hint="Make the thread's state an object.",
            agent_path=ctx.path,
        )
    plans: object = cast("dict[str, Any]", state).setdefault(KEY, {})
    if not isinstance(plans, dict):
        raise RunError(
            f"a plan is stored under `{KEY}` in the thread's state, which holds something else",
            hint="Store that under another key.",
            agent_path=ctx.path,
        )
    return cast("dict[str, Any]", plans)


def _find_unfinished(flow: FlowSpec, request: str, ctx: CallContext) -> Plan | None:
    """Return the plan that an earlier run of the same request left unfinished."""
    try:
        plan = TypeAdapter(Plan).validate_python(_plans(ctx).get(flow.name))
    except ValidationError:
        return None
    return plan if plan["request"] == request else None


def _save(flow: FlowSpec, plan: Plan, ctx: CallContext) -> None:
    _plans(ctx)[flow.name] = plan
    tasks = [task["task"] for task in plan["tasks"]]
    emit(ctx, StateChangedEvent, toolkit=flow.name, updates={"plan": tasks}, states=_states(plan))


def _update(flow: FlowSpec, plan: Plan, ctx: CallContext, number: int, status: Status, result: str | None) -> None:
    task = plan["tasks"][number - 1]
    task["status"], task["result"] = status, result
    # A tool may have replaced the thread's state.
    _plans(ctx)[flow.name] = plan
    updates = {"task": number, "status": status}
    emit(ctx, StateChangedEvent, toolkit=flow.name, updates=updates, states=_states(plan))


def _states(plan: Plan) -> list[Status]:
    return [task["status"] for task in plan["tasks"]]


def _task_prompt(plan: Plan, number: int) -> str:
    listed = "\n".join(f"{at}. {task['task']}" for at, task in enumerate(plan["tasks"], 1))
    done = "\n\n".join(
        f"{at}. {task['result']}" for at, task in enumerate(plan["tasks"], 1) if task["status"] == "done"
    )
    return (
        f"Request:\n{plan['request']}\n\nPlan:\n{listed}\n\nResults so far:\n{done or 'none'}\n\n"
        f"Your task, number {number}:\n{plan['tasks'][number - 1]['task']}"
    )


def _report(plan: Plan) -> str:
    done = "\n\n".join(f"{at}. {task['task']}\n{task['result']}" for at, task in enumerate(plan["tasks"], 1))
    return f"Request:\n{plan['request']}\n\nTasks and their results:\n{done}"
