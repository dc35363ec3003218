"""The shell toolset of 0.3 with its configuration, tool and rules; commands that are always refused stay refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from pydantic_ai import FunctionToolset

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.files.code_files import CodeFiles
from llm_do.files.code_watch import watch_code
from llm_do.files.paths import display_path
from llm_do.files.root import Root
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.launching_programs import WRAPPERS
from llm_do.policy.values import Decision, Pipeline
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.shell.command_judges import CommandJudge, apply_limits, stricter
from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from llm_do.toolsets.shell.sandbox.command_sandbox import CommandSandbox
from llm_do.toolsets.shell.shell_toolset import Shell, shell_tool

__all__ = ["ShellConfig", "ShellRule", "ShellToolset"]


class ShellRule(TypedDict, total=False):
    """One rule of a `ShellToolset`.

    Args:
        pattern: Words that a command begins with.
        approval_required: Whether the command needs approval, True by default.
        approval_required_if_args: Arguments with which the command needs approval.
    """

    pattern: str
    approval_required: bool
    approval_required_if_args: list[str]


class ShellConfig(TypedDict, total=False):
    """The configuration of a `ShellToolset`.

    Args:
        rules: The first rule whose pattern a command begins with decides.
        default: The rule for other commands; without it they are blocked.
        base_path: The folder that commands are confined to, the working directory by default.
    """

    rules: Sequence[ShellRule]
    default: Mapping[str, bool]
    base_path: str | Path


class ShellToolset(FunctionToolset[Any]):
    """The `shell` tool with its own rules.

    Args:
        config: The rules and the default.
        id: A name for the toolset.
        max_retries: Retries of a call with invalid arguments.

    Raises:
        UsageError: The configuration has an unknown key, or a pattern that isn't a command.

    Example:
        >>> toolset = ShellToolset({"rules": [{"pattern": "git status", "approval_required": False}]})
        >>> list(toolset.tools)
        ['shell']
    """

    def __init__(self, config: ShellConfig | None = None, id: str | None = None, max_retries: int = 1) -> None:
        options: ShellConfig = config or {}
        _reject_unknown(options, ShellConfig.__annotations__)
        default = options.get("default")
        if default is not None:
            _reject_unknown(default, {"approval_required": bool})
        root = Path(options.get("base_path", "."))
        code = CodeFiles(root)
        protection, sandbox = Protection(Root(root), code), CommandSandbox(watch_code(code))
        asks = None if default is None else bool(default.get("approval_required", True))
        judge = _judge(protection, [_rule(rule) for rule in options.get("rules", ())], asks)
        shell = Shell(protection.root, judge, sandbox, may_leave=True)
        super().__init__([shell_tool(shell, id or "shell")], max_retries=max_retries, id=id)


@frozen
class _Rule:
    """A `ShellRule` with its pattern parsed."""

    words: tuple[str, ...]
    approval_required: bool
    if_args: tuple[str, ...]


def _rule(rule: ShellRule) -> _Rule:
    _reject_unknown(rule, ShellRule.__annotations__)
    try:
        pipeline = parse_command(rule.get("pattern", ""))
    except CommandRefusedError as error:
        raise UsageError(
            f"the pattern {rule.get('pattern', '')!r} is not a command: {error.message}",
            hint="write a program and its first arguments, such as `git log`",
        ) from error
    if len(pipeline) != 1:
        raise UsageError(
            f"the pattern {rule.get('pattern', '')!r} is more than one command", hint="write one rule for each command"
        )
    arguments = rule.get("approval_required_if_args", ())
    if isinstance(arguments, str):
        raise UsageError(
            f"`approval_required_if_args` must be a list of arguments, not the text {arguments!r}",
            hint=f"write [{arguments!r}]",
        )
    return _Rule(pipeline[0], rule.get("approval_required", True), tuple(arguments))


def _reject_unknown(options: object, names: Mapping[str, object]) -> None:
    unknown = sorted(set(cast("Mapping[str, object]", options)) - set(names))
    if unknown:
        raise UsageError(f"ShellToolset has no option {unknown[0]!r}", hint=f"Its options are {', '.join(names)}.")


def _judge(protection: Protection, rules: Sequence[_Rule], default: bool | None) -> CommandJudge:
    """Return a judge in which the first rule whose words a command begins with decides, protected files aside.

    `default` says whether other commands need approval; None blocks them.
    """

    def judge(pipeline: Pipeline, cwd: str) -> Decision:
        decision = Decision("allow", "its rules say so")
        for argv in pipeline:
            rule = next((rule for rule in rules if argv[: len(rule.words)] == rule.words), None)
            asks = default if rule is None else rule.approval_required
            if asks is None:
                return Decision("deny", f"no rule allows {display_path(' '.join(argv), 80)}")
            if rule is not None and any(argument in argv[1:] for argument in rule.if_args):
                asks = True
            if asks:
                decision = stricter(decision, Decision("ask", "its rules say so"))
            elif _may_do_something_else(argv, () if rule is None else rule.words):
                reason = f"{display_path(argv[0])} may run or write something else this way"
                decision = stricter(decision, Decision("ask", reason))
        return apply_limits(protection, decision, pipeline, cwd)

    return judge


def _may_do_something_else(argv: Sequence[str], spelled: Sequence[str]) -> bool:
    """Whether a command may run another program, or write, whatever the rule that spells its first words says."""
    if argv[0].rpartition("/")[2] in WRAPPERS:
        return True
    return any(piece.role == "unknown" and piece.word >= len(spelled) for piece in read_command(tuple(argv)).pieces)
