"""The default agents of a plan, for projects that don't declare their own."""

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
            "description": "The tasks in the order to do them, each one self-contained.",
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}
"""The output type of a planner."""

_PLANNER = (
    "Break the request into a short list of tasks, in the order to do them. Each will be carried out by an agent that "
    "sees the request, the list and the results so far. Don't do the tasks yourself."
)
_EXECUTOR = (
    "Carry out the one task you are given, with the request and the results so far in mind. Answer with its result."
)
_SYNTHESISER = "Answer the request from the results of the tasks. If a task could not be done, say what is missing."


def plan_members(
    planner: str | None, executor: str | None, synthesiser: str | None
) -> tuple[tuple[str, ...], dict[str, AgentSpec]]:
    """Return the names of a plan's members, and the default agents among them.

    Example:
        >>> plan_members("architect", None, None)[0]
        ('architect', 'executor', 'synthesiser')
    """
    defaults = {
        "planner": lambda: AgentSpec("planner", instructions=_PLANNER, output_type=PLAN_SCHEMA),
        "executor": lambda: AgentSpec("executor", instructions=_EXECUTOR),
        "synthesiser": lambda: AgentSpec("synthesiser", instructions=_SYNTHESISER),
    }
    chosen = {"planner": planner, "executor": executor, "synthesiser": synthesiser}
    names = tuple(own or name for name, own in chosen.items())
    return names, {name: defaults[name]() for name, own in chosen.items() if own is None}
