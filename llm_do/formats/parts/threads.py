"""The model of the manifest's `threads`: where they are kept, and what a new one gets."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from llm_do.formats.parts.shared import CompactionFile
from llm_do.formats.validation.fields import Models, ModelSettings, Opt, Strict, Text

__all__ = ["ThreadsFile"]


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
