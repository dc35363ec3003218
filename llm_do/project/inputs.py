"""Input models: the types of a callable's input, its validation, and its rendering as a prompt.

Attachments are only named here; the runtime reads them, because it knows what a model may see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

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
    "attaching_arguments",
    "describe_input",
    "input_names",
    "to_input",
]


@frozen
class Attachment:
    """A file sent to the model along with the text.

    Args:
        path: Path of the file, relative to the project root.
        data: Its content, if already loaded; then `path` is only its name.
        media_type: Such as `image/png`; None to guess it from the file's name.
    """

    path: str
    data: bytes | None = field(default=None, repr=False)
    media_type: str | None = None


PromptContent: TypeAlias = "str | Attachment | UserContent"
"""One part of a prompt: text, an attachment, or PydanticAI's own user content."""


class AgentArgs(BaseModel):
    """Base class of typed input: validates it, provides the tool schema, and renders the prompt.

    Example:
        >>> class Pitch(AgentArgs):
        ...     company: str
        ...     def prompt_messages(self):
        ...         return [f"Judge the pitch of {self.company}."]
        >>> Pitch(company="Acme").prompt_messages()
        ['Judge the pitch of Acme.']
    """

    def prompt_messages(self) -> list[PromptContent]:
        """Render the prompt: by default, the input as JSON. Override it to write prose instead."""
        return [self.model_dump_json()]


def _no_paths() -> list[str]:
    # `list` itself would do, but to look for its parameters costs more than all the rest of this module.
    return []


class PromptInput(AgentArgs):
    """The default input: a text, and paths of files in the project to attach."""

    model_config = ConfigDict(extra="forbid")

    input: str = Field(description="The request, in plain text.")
    attachments: list[str] = Field(default_factory=_no_paths, description="Paths of files in the project to attach.")

    @field_validator("input")
    @classmethod
    def _is_not_empty(cls, value: str) -> str:
        if not value.strip():
            raise PydanticCustomError("empty_input", "it is empty")  # providers refuse an empty message
        return value

    def prompt_messages(self) -> list[PromptContent]:
        """Render the text, then one attachment per path."""
        return [self.input, *(Attachment(path) for path in self.attachments)]


def attaching_arguments(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of an input's fields that are paths of files which the call then reads.

    Example:
        >>> attaching_arguments(PromptInput), attaching_arguments(AnyInput)
        (('attachments',), ())
    """
    return ("attachments",) if issubclass(model, PromptInput) else ()


class AnyInput(AgentArgs):
    """Input whose shape is checked elsewhere, such as by a function's own schema."""

    model_config = ConfigDict(extra="allow")


def to_input(model: type[BaseModel], value: object) -> BaseModel:
    """Validate a caller's input as an input model.

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
        hint = f"It takes {describe_input(model)}"
        if isinstance(value, str) and "input" not in input_names(model):
            hint += "; on the command line, pass them with --field NAME=VALUE"
        raise InputError(f"input does not fit {model.__name__}: {faults}", hint=f"{hint}.") from error


def describe_input(model: type[BaseModel]) -> str:
    """Describe the fields of an input model in one line, for error messages and help.

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
    """Map the names that an input may use to the model's fields.

    Example:
        >>> list(input_names(PromptInput))
        ['input', 'attachments']
    """
    return {known: info for name, info in model.model_fields.items() for known in _names(name, info, model)}


def _names(name: str, info: FieldInfo, model: type[BaseModel]) -> Iterator[str]:
    """Yield the names of a field in an input, the preferred one first; none if it is only read from a nested path."""
    config = model.model_config
    by_alias, alias = config.get("validate_by_alias") is not False, info.validation_alias
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if by_alias and isinstance(choice, str):
            yield choice
    if alias is None or not by_alias or config.get("populate_by_name") or config.get("validate_by_name"):
        yield name
