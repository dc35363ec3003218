"""Limits of runs: `runtime` with its budget, and `bounds`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from llm_do.formats.parts.least_counts import LEAST
from llm_do.formats.validation.fields import Name, Opt, Strict, Text, empty_dict

__all__ = ["BoundsFile", "BudgetFile", "OverridesFile", "RecordFile", "RuntimeFile"]

_Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Count: TypeAlias = Annotated[int, Field(ge=0)]


class BudgetFile(Strict):
    """Limits of a run, nested and parallel calls included."""

    requests: Opt[_Count] = Field(default=None, description="Model requests.")
    tool_calls: Opt[_Count] = Field(default=None, description="Tool calls that run.")
    input_tokens: Opt[_Count] = Field(default=None, description="Tokens sent.")
    output_tokens: Opt[_Count] = Field(default=None, description="Tokens received.")
    total_tokens: Opt[_Count] = Field(default=None, description="Tokens sent and received.")
    cost_usd: Opt[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default=None, description="US dollars.")
    descendants: Opt[_Count] = Field(default=None, description="Nested calls.")


class OverridesFile(Strict):
    """The approval settings of calls to one agent; the project's where left out."""

    calls_require_approval: Opt[bool] = Field(default=None, description="Whether a call to this agent needs approval.")
    attachments_require_approval: Opt[bool] = Field(
        default=None, description="Whether attaching files to such a call needs approval."
    )


class RecordFile(Strict):
    """What recorded runs keep of the requests to models."""

    exchanges: bool = Field(default=True, description="Whether requests and responses are kept.")
    keep_days: int = Field(default=30, ge=LEAST["keep_days"], description="Days after which they are dropped.")
    max_mb: int = Field(
        default=500,
        ge=LEAST["max_mb"],
        description="Megabytes that they may take; those of the oldest runs are dropped first.",
    )


class RuntimeFile(Strict):
    """Limits and modes."""

    approval_mode: Literal["prompt", "approve_all", "reject_all"] = Field(
        default="prompt", description="Who answers approval requests: a person, always yes, or always no."
    )
    max_depth: int = Field(default=5, ge=LEAST["max_depth"], description="How deep calls may nest; the entry is at 1.")
    max_steps: int = Field(default=10, ge=LEAST["max_steps"], description="Model requests in one agent run.")
    loop_threshold: int = Field(
        default=3,
        ge=LEAST["loop_threshold"],
        description="Identical tool calls in a row that end a run; 0 turns it off.",
    )
    max_retries: int = Field(
        default=3, ge=LEAST["max_retries"], description="Retries of a model request after a transient failure."
    )
    on_tool_error: Literal["return", "raise"] = Field(
        default="return", description="Give a tool's error to the model, or end the run with it."
    )
    tool_timeout: Opt[_Seconds] = Field(default=None, description="Seconds a tool call may take.")
    run_timeout: Opt[_Seconds] = Field(default=None, description="Seconds a run may take.")
    max_concurrency: int = Field(default=50, ge=LEAST["max_concurrency"], description="Model requests in flight.")
    max_calls_per_response: int = Field(
        default=128,
        ge=LEAST["max_calls_per_response"],
        description="Tool calls of one model response that run; the rest are refused.",
    )
    max_result_bytes: int = Field(
        default=65_536, ge=LEAST["max_result_bytes"], description="Bytes of a tool's result that are sent to the model."
    )
    record: RecordFile = Field(
        default_factory=RecordFile.model_construct, description="What recorded runs keep of the requests to models."
    )
    # Only 0.3's projects have it: see llm_do.compat.
    auth_mode: Text = Field(default="oauth_off", description="Accepted for older projects; only `oauth_off`.")
    budget: BudgetFile = Field(default_factory=BudgetFile.model_construct, description="Limits of a run.")
    return_permission_errors: bool = Field(
        default=True, description="Report a denial to the model; false ends the run."
    )
    agent_calls_require_approval: bool = Field(
        default=False, description="Whether calling an agent or a flow, or handing over, needs approval."
    )
    agent_attachments_require_approval: bool = Field(
        default=False, description="Whether attaching files to a call of an agent needs approval."
    )
    agent_approval_overrides: dict[Name, OverridesFile] = Field(
        default_factory=empty_dict, description="Approval settings of single agents, by name."
    )


class BoundsFile(Strict):
    """The most that a run may take in the worst case, as `llm-do check --bounds` computes it."""

    requests: Opt[_Count] = Field(default=None, description="Model requests, retries included.")
    tool_calls: Opt[_Count] = Field(default=None, description="Tool calls that run.")
    cost_usd: Opt[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default=None, description="US dollars.")
