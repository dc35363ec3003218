"""Models of the manifest's flows, one for each mode; the steps of a workflow are in `flow_steps`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field

from llm_do.formats.parts.flow_steps import StepsFile
from llm_do.formats.validation.fields import FunctionRef, Name, Opt, Strict, Text, empty_list

__all__ = ["FlowFile"]


class WorkflowFile(Strict):
    """Sequential and parallel steps."""

    mode: Literal["workflow"] = Field(description="Sequential and parallel steps.")
    description: Opt[str] = Field(default=None, description="Shown to models when the flow is a tool.")
    flow: Opt[Text] = Field(default=None, description="The expression, such as `a >> (b | c) >> d`.")
    steps: Opt[StepsFile] = Field(
        default=None, description="Instead of `flow`, a list of steps, which may be conditional or repeated."
    )
    agents: list[Name] = Field(default_factory=empty_list, description="The members; without `flow`, in this order.")
    separator: str = Field(default="\n\n", description="Text between the outputs of parallel members.")
    aggregate: Opt[FunctionRef] = Field(
        default=None, description="Combines the outputs of parallel members, instead of `separator`."
    )
    on_error: Literal["cancel", "collect"] = Field(
        default="cancel", description="Whether a failing parallel member cancels the others."
    )
    max_concurrency: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Members that run at once; all by default."
    )


class HandoffFile(Strict):
    """Agents that hand control to each other."""

    mode: Literal["handoff"] = Field(description="Agents that hand control to each other.")
    description: Opt[str] = Field(default=None, description="Shown to models when the flow is a tool.")
    agents: list[Name] = Field(min_length=1, description="The members; the first one starts.")
    max_handoffs: int = Field(default=10, ge=1, description="Maximum number of handoffs in one run.")


class TeamFile(Strict):
    """A lead that delegates to workers."""

    mode: Literal["team"] = Field(description="A lead that delegates to workers.")
    description: Opt[str] = Field(default=None, description="Shown to models when the flow is a tool.")
    lead: Name = Field(description="The agent that delegates.")
    workers: list[Name] = Field(min_length=1, description="The agents it delegates to.")


class PlanFile(Strict):
    """Plan, execute, synthesise."""

    mode: Literal["plan"] = Field(description="A planner, an executor and a synthesiser.")
    description: Opt[str] = Field(default=None, description="Shown to models when the flow is a tool.")
    planner: Opt[Name] = Field(default=None, description="The agent that plans; a built-in one by default.")
    executor: Opt[Name] = Field(
        default=None, description="The agent that works through the plan; a built-in one by default."
    )
    synthesiser: Opt[Name] = Field(
        default=None, description="The agent that answers at the end; a built-in one by default."
    )


FlowFile: TypeAlias = Annotated[WorkflowFile | HandoffFile | TeamFile | PlanFile, Discriminator("mode")]
