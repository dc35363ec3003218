"""The shell toolset of version 0.3, with its configuration and tool; our own refusals come on top of its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from pydantic_ai import FunctionToolset

from llm_do.errors import UsageError
from llm_do.files.root import Root
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.shell.command_judges import ClassicRule, classic_judge
from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from llm_do.toolsets.shell.shell_toolset import Shell, shell_tool

__all__ = ["ShellConfig", "ShellRule", "ShellToolset"]


class ShellRule(TypedDict, total=False):
    """One rule of a `ShellToolset`.

    Args:
        pattern: Words that a command begins with.
        approval_required: Whether it is asked about, True if left out.
        approval_required_if_args: Arguments that make it asked about.
    """

    pattern: str
    approval_required: bool
    approval_required_if_args: list[str]


class ShellConfig(TypedDict, total=False):
    """The configuration of a `ShellToolset`.

    Args:
        rules: The first one whose pattern a command begins with decides.
        default: What holds for other commands; without it they are blocked.
        base_path: The folder that commands are confined to; the working directory if left out.
    """

    rules: Sequence[ShellRule]
    default: Mapping[str, bool]
    base_path: str | Path


class ShellToolset(FunctionToolset[Any]):
    """`shell` with rules of its own.

    Args:
        config: The rules and what holds without one.
        id: A name for the toolset.
        max_retries: Retries of a call with invalid arguments.

    Raises:
        UsageError: The configuration has a key that means nothing, or a pattern that is no command.

    Example:
        >>> toolset = ShellToolset({"rules": [{"pattern": "git status", "approval_required": False}]})
        >>> list(toolset.tools)
        ['shell']
    """

    def __init__(self, config: ShellConfig | None = None, id: str | None = None, max_retries: int = 1) -> None:
        given: ShellConfig = config or {}
        _known(given, ShellConfig.__annotations__)
        default = given.get("default")
        if default is not None:
            _known(default, {"approval_required": bool})
        protection = Protection(Root(given.get("base_path", ".")))
        asks = None if default is None else bool(default.get("approval_required", True))
        judge = classic_judge(protection, [_rule(rule) for rule in given.get("rules", ())], asks)
        super().__init__([shell_tool(Shell(protection.root, judge), id or "shell")], max_retries=max_retries, id=id)


def _rule(rule: ShellRule) -> ClassicRule:
    _known(rule, ShellRule.__annotations__)
    try:
        pipeline = parse_command(rule.get("pattern", ""))
    except CommandRefusedError as error:
        raise UsageError(f"the pattern {rule.get('pattern', '')!r} is no command: {error.message}") from error
    if len(pipeline) != 1:
        raise UsageError(f"the pattern {rule.get('pattern', '')!r} is more than one command")
    asked = rule.get("approval_required_if_args", ())
    if isinstance(asked, str):
        raise UsageError(f"`approval_required_if_args` has to be a list of arguments, not the text {asked!r}")
    return ClassicRule(pipeline[0], rule.get("approval_required", True), tuple(asked))


def _known(given: object, names: Mapping[str, object]) -> None:
    unknown = sorted(set(cast("Mapping[str, object]", given)) - set(names))
    if unknown:
        raise UsageError(f"ShellToolset knows no option {unknown[0]!r}", hint=f"It has {', '.join(names)}.")
