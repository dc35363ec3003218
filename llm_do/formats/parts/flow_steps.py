"""Models of the steps of a workflow that are conditional or repeated, and the tree that they declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from llm_do.diagnostics.codes.flows import deep_steps
from llm_do.formats.syntax.flow_expression import (
    MAX_NESTING,
    Choice,
    Condition,
    FlowSyntaxError,
    FlowTree,
    ForEach,
    Repeat,
    Serial,
    parse_flow,
)
from llm_do.formats.syntax.source import KeyPath
from llm_do.formats.validation.fields import Opt, Strict, Text

__all__ = ["ForEachStep", "OnError", "RepeatStep", "StepFile", "StepsFile", "WhenStep", "tree_of"]

OnError: TypeAlias = Literal["cancel", "collect"]


class WhenStep(Strict):
    """A step that depends on a condition."""

    when: Text = Field(description="The condition on the output of the step before, such as `output.kind == 'refund'`.")
    then: BodyFile = Field(description="What runs if it is true.")
    else_: Opt[BodyFile] = Field(
        default=None, alias="else", description="What runs if it is false; by default, the input is passed on."
    )


class ForEachStep(Strict):
    """A step that runs for each item of a list."""

    for_each: Text = Field(
        description="The list in the output of the step before, such as `output.items`, or `outputs`."
    )
    do: BodyFile = Field(description="What runs for each item.")
    concurrency: int = Field(default=8, ge=1, description="Items worked on at once.")
    on_error: Opt[OnError] = Field(
        default=None, description="Whether a failing item cancels the others; as the flow says by default."
    )
    at_most: int = Field(default=100, ge=1, le=10_000, description="Maximum number of items.")


class RepeatStep(Strict):
    """Steps that run again until a condition is true."""

    repeat: BodyFile = Field(description="What is repeated, each time with its last output.")
    until: Text = Field(description="The condition on its output, such as `output.approved`.")
    at_most: int = Field(ge=1, le=1000, description="Maximum number of repetitions.")


def _kind(value: object) -> str | None:
    """The tag of a step: the key that only this kind of step has."""
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list):
        return "<list>"
    if isinstance(value, WhenStep | ForEachStep | RepeatStep):  # when it is written out again
        return {WhenStep: "<when>", ForEachStep: "<for_each>", RepeatStep: "<repeat>"}[type(value)]
    if isinstance(value, dict):
        for tag, keys in (
            ("<when>", ("when", "then")),
            ("<for_each>", ("for_each",)),
            ("<repeat>", ("repeat", "until")),
        ):
            if any(key in value for key in keys):
                return tag
    return None


def _step_kind(value: object) -> str | None:
    kind = _kind(value)
    return kind if kind != "<list>" else None


_EXPECTED = "must be an expression, or an object with `when`, `for_each` or `repeat`"

StepFile: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[WhenStep, Tag("<when>")]
    | Annotated[ForEachStep, Tag("<for_each>")]
    | Annotated[RepeatStep, Tag("<repeat>")],
    Discriminator(_step_kind, custom_error_type="flow_step", custom_error_message=_EXPECTED),
]
"""One step: an expression, or a conditional or repeated step."""

StepsFile: TypeAlias = Annotated[list[StepFile], Field(min_length=1)]

BodyFile: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[WhenStep, Tag("<when>")]
    | Annotated[ForEachStep, Tag("<for_each>")]
    | Annotated[RepeatStep, Tag("<repeat>")]
    | Annotated[StepsFile, Tag("<list>")],
    Discriminator(_kind, custom_error_type="flow_step", custom_error_message=_EXPECTED),
]
"""What is inside a step: another one, or a list of them."""


def tree_of(steps: Sequence[StepFile], on_error: OnError, keys: KeyPath = ("steps",), depth: int = 0) -> FlowTree:
    """Return the tree that steps declare, which are at `keys` in the flow's declaration.

    Args:
        steps: The steps, one after the other.
        on_error: What holds for a `for_each` that doesn't say.
        keys: Where the list is.
        depth: How deep it is.

    Raises:
        FlowSyntaxError: An expression can't be parsed, or steps are nested too deeply.

    Example:
        >>> from llm_do.formats.syntax.flow_expression import format_flow
        >>> format_flow(tree_of(["a", WhenStep.model_validate({"when": "output.ok", "then": "b"})], "cancel"))
        'a >> (when output.ok then b)'
    """
    parts = [_tree(step, on_error, (*keys, index), depth) for index, step in enumerate(steps)]
    return parts[0] if len(parts) == 1 else Serial(tuple(parts))


def _tree(step: BodyFile, on_error: OnError, keys: KeyPath, depth: int) -> FlowTree:
    if depth > MAX_NESTING:
        raise FlowSyntaxError(deep_steps(MAX_NESTING), 0, 1, keys)
    if isinstance(step, str):
        return parse_flow(step, keys)
    if isinstance(step, list):
        return tree_of(step, on_error, keys, depth + 1)
    if isinstance(step, WhenStep):
        other = _tree(step.else_, on_error, (*keys, "else"), depth + 1) if step.else_ is not None else None
        then = _tree(step.then, on_error, (*keys, "then"), depth + 1)
        return Choice(Condition(step.when, (*keys, "when")), then, other)
    if isinstance(step, ForEachStep):
        items = Condition(step.for_each, (*keys, "for_each"))
        body = _tree(step.do, on_error, (*keys, "do"), depth + 1)
        return ForEach(items, body, step.concurrency, step.on_error or on_error, step.at_most)
    body = _tree(step.repeat, on_error, (*keys, "repeat"), depth + 1)
    return Repeat(body, Condition(step.until, (*keys, "until")), step.at_most)
