"""Models of the parts of both files: flows, threads, compaction, and the gates of states.

The files themselves are `llm_do.formats.manifest` and `llm_do.formats.agent_file`; toolsets are
`llm_do.formats.toolset_config`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field

from llm_do.formats.flow_steps import StepsFile
from llm_do.formats.validation.fields import (
    FunctionRef,
    Models,
    ModelSettings,
    Name,
    Opt,
    Strict,
    Text,
    empty_list,
)

__all__ = ["CassetteOptions", "CompactionFile", "FlowFile", "StateGate", "ThreadsFile"]


class CassetteOptions(Strict):
    """What cassettes hold, and how requests are compared with those in them."""

    tools: list[Text] = Field(
        default_factory=empty_list,
        description="Names of tools, or patterns such as `notes_*`, whose results are recorded and replayed.",
    )
    ignore: list[Text] = Field(
        default_factory=empty_list, description="Regular expressions of text that counts as equal, such as dates."
    )


class StateGate(Strict):
    """When one tool is available, and what its success changes."""

    requires: list[Text] = Field(default_factory=empty_list, description="States that must be unlocked.")
    forbids: list[Text] = Field(default_factory=empty_list, description="States that must not be unlocked.")
    needs: list[Text] = Field(default_factory=empty_list, description="Keys of the context that must exist.")
    enables: list[Text] = Field(default_factory=empty_list, description="States that success unlocks.")
    disables: list[Text] = Field(default_factory=empty_list, description="States that success locks again.")


_Strategy: TypeAlias = Literal["tool_result_clearing", "summarization", "sliding_window"]


class CompactionFile(Strict):
    """How a long history is shortened before a model request."""

    max_tokens: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Shorten above this many tokens; not beside `fraction`."
    )
    fraction: Opt[Annotated[float, Field(gt=0, le=1)]] = Field(
        default=None, description="Shorten above this part of the model's context window; 0.8 by default."
    )
    strategies: list[_Strategy] = Field(
        default_factory=empty_list,
        description="Tried in this order until the history fits; by default clearing, then the window.",
    )
    preserve_recent: Opt[Annotated[int, Field(ge=0)]] = Field(
        default=None, description="Latest messages that stay as they are; 10 by default."
    )
    summary_model: Opt[Text] = Field(default=None, description="The model that summarizes; the agent's by default.")


class ThreadsFile(Strict):
    """Where threads are kept, and the defaults of their configuration."""

    store: Text = Field(
        default="sqlite",
        description="`sqlite`, which is `.llm-do/state.db` in the project, `memory`, or a PostgreSQL database:"
        " `postgresql://USER:${PASSWORD}@HOST/DATABASE`.",
    )
    keep_days: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None,
        description="Days after which a thread that no one has continued is deleted; by default none is.",
    )
    model: Opt[Models] = Field(default=None, description="Model of new threads.")
    model_settings: ModelSettings = Field(default_factory=ModelSettings, description="Model settings of new threads.")
    enabled_tools: Opt[list[Text]] = Field(
        default=None, description="Names or globs of the tools that agents may see and call; all by default."
    )
    history_limit: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Messages of the past that a model is sent, in whole turns; all by default."
    )
    system_prompt: Opt[str] = Field(default=None, description="Added to the agent's instructions.")
    compaction: Opt[CompactionFile] = Field(default=None, description="How a long history is shortened.")


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
