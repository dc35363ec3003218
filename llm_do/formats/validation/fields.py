"""The field types that the manifest's and the agent file's models share.

`llm_do.formats.validation.validator` turns faults into diagnostics.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
)
from pydantic_core import CoreSchema, PydanticCustomError
from typing_extensions import TypedDict

__all__ = [
    "CLASS_PATTERN",
    "FUNCTION_PATTERN",
    "NAME_PATTERN",
    "TEXT_PATTERN",
    "ClassRef",
    "Effect",
    "FunctionRef",
    "Glob",
    "HooksFile",
    "ModelSettings",
    "Models",
    "Name",
    "Opt",
    "Path",
    "Strict",
    "Text",
    "empty_dict",
    "empty_list",
    "model_setting_names",
    "text_or_list",
    "text_or_object",
]

T = TypeVar("T")

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
"""Every name of a project: it becomes a tool name on the wire."""

Effect: TypeAlias = Literal["allow", "ask", "deny"]


def empty_list() -> list[Any]:
    """Return an empty list, as a field's default.

    Pydantic asks for the signature of each factory. That of a built-in type is text, for whose analysis the standard
    library compiles its largest regular expression.
    """
    return []


def empty_dict() -> dict[Any, Any]:
    """Return an empty object, as a field's default."""
    return {}


class Strict(BaseModel):
    """Base of all models of files: unknown keys are errors, nothing is converted, values don't change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=(), defer_build=True)


def _refuse_null(value: object) -> object:
    if value is None:
        raise PydanticCustomError("null", "has no value")
    return value


def _kind(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list):
        return "<list>"
    return "<object>" if isinstance(value, dict | BaseModel) else None  # a model: when it is written out again


def text_or_list(value: object) -> str | None:
    """The tag of a value in a union of text and list."""
    kind = _kind(value)
    return kind if kind != "<object>" else None


def text_or_object(value: object) -> str | None:
    """The tag of a value in a union of text and object."""
    kind = _kind(value)
    return kind if kind != "<list>" else None


def _bool_or_text(value: object) -> str:
    return "<bool>" if isinstance(value, bool) else "<text>"


class _NotNull:
    """Takes null out of a field's JSON Schema: the key may be absent, not null."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
        return choices[0] if len(choices) == 1 else schema


Opt = Annotated[T | None, BeforeValidator(_refuse_null), _NotNull()]
"""A key that may be left out, but not be null."""

Text: TypeAlias = Annotated[str, Field(min_length=1)]

Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]

TEXT_PATTERN = r"^[^\x00]+$"

Path: TypeAlias = Annotated[str, Field(pattern=TEXT_PATTERN)]

Glob: TypeAlias = Annotated[str, Field(pattern=TEXT_PATTERN)]

FUNCTION_PATTERN = r"^[^:\x00]+\.py:[^\W\d]\w*$"

FunctionRef: TypeAlias = Annotated[str, Field(pattern=FUNCTION_PATTERN, examples=["main.py:main"])]

CLASS_PATTERN = r"^(?:[^:\x00]+\.py:|(?:[^\W\d]\w*\.)+)[^\W\d]\w*$"


def _names_class(value: str) -> str:
    if value.endswith(".py"):  # a file without a class, which would pass for the class `py` of a module
        raise PydanticCustomError("string_pattern_mismatch", "names no class", {"pattern": CLASS_PATTERN})
    return value


ClassRef: TypeAlias = Annotated[
    str,
    Field(pattern=CLASS_PATTERN, examples=["schemas.py:Pitch", "schemas.Pitch"]),
    AfterValidator(_names_class),
]

Models: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[list[Text], Field(min_length=1), Tag("<list>")],
    Discriminator(
        text_or_list, custom_error_type="text_or_list", custom_error_message="must be text or a list of texts"
    ),
]
"""A model's name, or names that are tried in order."""


class HooksFile(Strict):
    """Functions called at points of an agent's run, one after the other, with keywords."""

    start: list[FunctionRef] = Field(
        default_factory=empty_list, description="When an agent's run begins; called with `agent`."
    )
    finished: list[FunctionRef] = Field(
        default_factory=empty_list, description="When it has ended normally; called with `agent`."
    )
    error: list[FunctionRef] = Field(
        default_factory=empty_list, description="When it ended early; called with `agent` and `error`."
    )
    pre_llm_call: list[FunctionRef] = Field(
        default_factory=empty_list,
        description="Before a model request; called with `agent` and `messages`, may return others.",
    )
    post_llm_call: list[FunctionRef] = Field(
        default_factory=empty_list,
        description="After its response; called with `agent` and `response`, may return another.",
    )
    pre_tool_call: list[FunctionRef] = Field(
        default_factory=empty_list,
        description="Before a tool call is approved or denied; called with `agent`, `tool_name` and `arguments`.",
    )
    post_tool_call: list[FunctionRef] = Field(
        default_factory=empty_list,
        description="After a tool call has run; called with `agent`, `tool_name` and `result`.",
    )


_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


class ModelSettings(TypedDict, total=False):
    """Settings sent with every model request. A provider's own settings are passed on; what isn't set isn't sent."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False, description="Randomness; 0 is the least.")]
    max_tokens: Annotated[int, Field(ge=1, description="Maximum number of tokens in one response.")]
    seed: Annotated[int, Field(description="Makes answers repeatable where the provider supports it.")]
    thinking: Annotated[
        Annotated[bool, Tag("<bool>")]
        | Annotated[Literal["minimal", "low", "medium", "high", "xhigh", "max"], Tag("<text>")],
        Discriminator(_bool_or_text),
        Field(description="Whether, or how hard, the model reasons before it answers."),
    ]
    top_p: Annotated[float, Field(ge=0, le=1, description="Sample from the tokens with this much probability.")]
    top_k: Annotated[int, Field(ge=1, description="Sample from this many tokens.")]
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False, description="Seconds a request may take.")]
    parallel_tool_calls: Annotated[bool, Field(description="Whether one response may call several tools.")]
    presence_penalty: Annotated[_Number, Field(description="Makes new subjects more likely.")]
    frequency_penalty: Annotated[_Number, Field(description="Makes repetition less likely.")]
    logit_bias: Annotated[dict[str, int], Field(description="How much likelier each token becomes, by token.")]
    stop_sequences: Annotated[list[str], Field(description="Texts at which the model stops.")]
    service_tier: Annotated[
        Literal["auto", "default", "flex", "priority"], Field(description="The provider's tier of service.")
    ]
    extra_headers: Annotated[dict[str, str], Field(description="Additional HTTP headers.")]
    extra_body: Annotated[dict[str, Any], Field(description="Additional parts of the request's body.")]


def model_setting_names() -> list[str]:
    """The settings that every provider knows."""
    return list(ModelSettings.__annotations__)
