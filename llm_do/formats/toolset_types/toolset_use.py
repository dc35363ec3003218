"""How an agent file lists its toolsets. What is configured of them is in `llm_do.formats.toolset_config`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from llm_do.formats.validation.fields import (
    Opt,
    Strict,
    Text,
    empty_list,
    text_or_object,
)

__all__ = ["PREFIX", "ToolsetList", "ToolsetUse"]

PREFIX = r"^[A-Za-z0-9_-]{0,63}$"
"""What may be put before the names of a toolset's tools."""


class ToolsetUse(Strict):
    """How an agent uses a toolset: a prefix, a selection of its tools, and the toolset's own options."""

    model_config = ConfigDict(extra="allow")

    prefix: Opt[Annotated[str, Field(pattern=PREFIX)]] = Field(
        default=None, description="Prefix of each tool's name, followed by an underscore."
    )
    include: list[Text] = Field(
        default_factory=empty_list, description="Globs of the tools to offer; empty offers all."
    )
    exclude: list[Text] = Field(default_factory=empty_list, description="Globs of the tools to leave out.")

    @property
    def options(self) -> dict[str, Any]:
        """The toolset's own options."""
        return dict(self.model_extra or {})


_Item: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[dict[Text, ToolsetUse], Field(min_length=1, max_length=1), Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be a name, or one name with its options",
    ),
]


def _list_or_object(value: object) -> str | None:
    return "<list>" if isinstance(value, list) else "<object>" if isinstance(value, dict) else None


ToolsetList: TypeAlias = Annotated[
    Annotated[list[_Item], Tag("<list>")] | Annotated[dict[Text, ToolsetUse], Tag("<object>")],
    Discriminator(
        _list_or_object,
        custom_error_type="list_or_object",
        custom_error_message="must be a list of names, or an object of names with options",
    ),
]
