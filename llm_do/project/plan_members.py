"""The agents that a plan runs with where a project names none of its own: declarations only."""

from __future__ import annotations

from typing import Any

from llm_do.project.agent_spec import AgentSpec

__all__ = ["PLAN_SCHEMA", "plan_members"]

PLAN_SCHEMA: dict[str, Any] = {
    "title": "Plan",
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {"type": "string", "minLength": 1},
            "description": "The tasks in the order in which they are to be done, each complete in itself.",
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}
"""What a planner answers with."""

_PLANNER = (
    "Break the request into a short list of tasks, in the order in which they are to be done. Each is carried out by "
    "somebody who sees the request, the list and the results so far. Don't do the tasks yourself."
)
_EXECUTOR = (
    "Carry out the one task you are given, with the request and the results so far in mind. Answer with its result."
)
_SYNTHESISER = "Answer the request with the results of the tasks. Say what is missing where a task could not be done."


def plan_members(
    planner: str | None, executor: str | None, synthesiser: str | None
) -> tuple[tuple[str, ...], dict[str, AgentSpec]]:
    """The members of a plan.

    Example:
        >>> plan_members("architect", None, None)[0]
        ('architect', 'executor', 'synthesiser')
    """
    shipped = {
        "planner": lambda: AgentSpec("planner", instructions=_PLANNER, output_type=PLAN_SCHEMA),
        "executor": lambda: AgentSpec("executor", instructions=_EXECUTOR),
        "synthesiser": lambda: AgentSpec("synthesiser", instructions=_SYNTHESISER),
    }
    given = {"planner": planner, "executor": executor, "synthesiser": synthesiser}
    names = tuple(own or name for name, own in given.items())
    return names, {name: shipped[name]() for name, own in given.items() if own is None}
