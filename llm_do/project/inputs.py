"""Input models: what a callable takes, how input becomes one, and how one becomes a prompt.

Attachments are named here and read by the runtime, which knows what a model may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from llm_do._startup.frozen import frozen
from llm_do.errors import InputError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_ai.messages import UserContent

__all__ = [
    "AgentArgs",
    "AnyInput",
    "Attachment",
    "PromptContent",
    "PromptInput",
    "describe_input",
    "input_names",
    "to_input",
]


@frozen
class Attachment:
    """A file that goes to the model beside the text.

    Args:
        path: Path of the file, relative to the project root.
        data: Its bytes, when they are at hand already; then `path` is only its name.
        media_type: Such as `image/png`; None takes it from the file's name.
    """

    path: str
    data: bytes | None = field(default=None, repr=False)
    media_type: str | None = None


PromptContent: TypeAlias = "str | Attachment | UserContent"
"""One part of a prompt: text, an attachment, or PydanticAI's own user content."""


class AgentArgs(BaseModel):
    """Base of typed input: validates, is the tool schema, and renders the prompt.

    Example:
        >>> class Pitch(AgentArgs):
        ...     company: str
        ...     def prompt_messages(self):
        ...         return [f"Judge the pitch of {self.company}."]
        >>> Pitch(company="Acme").prompt_messages()
        ['Judge the pitch of Acme.']
    """

    def prompt_messages(self) -> list[PromptContent]:
        """The prompt: by default the input as JSON. Override it to say it in words."""
        return [self.model_dump_json()]


class PromptInput(AgentArgs):
    """The default input: a text, and paths of files in the project that go with it."""

    model_config = ConfigDict(extra="forbid")

    input: str = Field(description="The request, in plain text.")
    attachments: list[str] = Field(default_factory=list, description="Paths of files in the project to attach.")

    def prompt_messages(self) -> list[PromptContent]:
        """The text, then one attachment per path."""
        return [self.input, *(Attachment(path) for path in self.attachments)]


class AnyInput(AgentArgs):
    """Input whose shape is checked elsewhere, such as by a function's own schema."""

    model_config = ConfigDict(extra="allow")


def to_input(model: type[BaseModel], value: object) -> BaseModel:
    """Make an input model of what a caller gave.

    Example:
        >>> to_input(PromptInput, "hello").input
        'hello'
    """
    if isinstance(value, model):
        return value
    data: object = value
    if isinstance(value, str):
        data = {"input": value}
    elif isinstance(value, BaseModel):
        data = value.model_dump()
    elif not isinstance(value, Mapping):
        raise InputError(
            f"input must be text or an object, not {type(value).__name__}", hint=f"It takes {describe_input(model)}."
        )
    try:
        return model.model_validate(dict(cast("Mapping[str, Any]", data)))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'input'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        how = f"It takes {describe_input(model)}"
        if isinstance(value, str) and "input" not in input_names(model):
            how += "; on the command line, give them with --field NAME=VALUE"
        raise InputError(f"input does not fit {model.__name__}: {faults}", hint=f"{how}.") from error


def describe_input(model: type[BaseModel]) -> str:
    """Say in one line what an input model takes, for error messages and help.

    Example:
        >>> describe_input(PromptInput)
        'input: str, attachments: list[str] (optional)'
    """
    parts: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        shown = getattr(kind, "__name__", str(kind)) if not getattr(kind, "__args__", None) else str(kind)
        known = next(iter(_names(name, info, model)), name)
        parts.append(f"{known}: {shown}" + ("" if info.is_required() else " (optional)"))
    return ", ".join(parts) or "nothing"


def input_names(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by the names that an input may have for them.

    Example:
        >>> list(input_names(PromptInput))
        ['input', 'attachments']
    """
    return {known: info for name, info in model.model_fields.items() for known in _names(name, info, model)}


def _names(name: str, info: FieldInfo, model: type[BaseModel]) -> Iterator[str]:
    """The names of a field in an input, the one to be shown first; none where it is only found inside of something."""
    config = model.model_config
    by_alias, alias = config.get("validate_by_alias") is not False, info.validation_alias
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if by_alias and isinstance(choice, str):
            yield choice
    if alias is None or not by_alias or config.get("populate_by_name") or config.get("validate_by_name"):
        yield name
