"""Models of parts that several kinds of files have: the gates of states, compaction, and what cassettes hold."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from llm_do.formats.validation.fields import Opt, Strict, Text, empty_list

__all__ = ["CassetteOptions", "CompactionFile", "StateGate"]


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
