"""What calls may do: `approvals`, `permissions` and `sandbox`."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from llm_do.formats.validation.fields import (
    Effect,
    FunctionRef,
    Glob,
    Opt,
    Path,
    Strict,
    Text,
    empty_list,
    text_or_object,
)

__all__ = ["ApprovalsFile", "PermissionsFile", "RuleFile", "Sandbox", "SandboxFile", "SandboxMode"]

SandboxMode: TypeAlias = Literal["auto", "required", "off"]


class RuleFile(Strict):
    """A rule with its own test cases."""

    rule: Text = Field(description="The pattern: `tool`, `tool(PATTERN)` or `tool(name=PATTERN)`.")
    why: Opt[str] = Field(default=None, description="Why the rule is there, for people.")
    allows: list[Text] = Field(default_factory=empty_list, description="Calls that the pattern must match.")
    refuses: list[Text] = Field(default_factory=empty_list, description="Calls that it must not match.")


_Rule: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[RuleFile, Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be a pattern, or an object with a `rule`",
    ),
]


class ApprovalsFile(Strict):
    """Rules for what a model may do without approval, with approval, or not at all."""

    default: Opt[Effect] = Field(
        default=None, description="The decision where no rule and no tool makes one; by kind of tool if left out."
    )
    deny: list[_Rule] = Field(
        default_factory=empty_list, description="Calls that are denied, whatever other rules allow."
    )
    ask: list[_Rule] = Field(default_factory=empty_list, description="Calls that need approval.")
    allow: list[_Rule] = Field(default_factory=empty_list, description="Calls that run without approval.")
    policy: Opt[FunctionRef] = Field(
        default=None, description="A Python function that decides about every call, within the rules."
    )


class PermissionsFile(Strict):
    """What must hold of the project's permissions, whatever its agents and rules say."""

    assertions: list[Text] = Field(
        default_factory=empty_list,
        alias="assert",
        description="Sentences that are proved whenever the project is linked, such as `never web -> shell` or "
        "`deploy only after tests_passed`.",
    )


class SandboxFile(Strict):
    """How commands that run without approval are confined."""

    mode: SandboxMode = Field(
        default="auto",
        description="Confine them where the machine can (`auto`), let none run without approval where it can't "
        "(`required`), or confine none (`off`).",
    )
    writable: list[Path] = Field(
        default_factory=empty_list,
        description="Folders outside the project that they may write to; `.git`, apart from its hooks and settings.",
    )
    readable: list[Glob] = Field(
        default_factory=empty_list,
        description="Globs of files that may hold secrets and that they may read anyway; `~/.kube` works too.",
    )


Sandbox: TypeAlias = Annotated[
    Annotated[SandboxMode, Tag("<text>")] | Annotated[SandboxFile, Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be `auto`, `required`, `off`, or an object with a `mode`",
    ),
]
