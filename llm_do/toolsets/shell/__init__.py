"""The shell toolsets: the built-in ones and those that a manifest configures.

A command line is parsed into argument vectors of literal words. The toolset checks, shows and runs these without
a shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset

from llm_do._startup.lazy import lazy_exports
from llm_do.errors import UsageError
from llm_do.files.root import Root
from llm_do.formats.toolset_config import ShellConfig as ShellOptions
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.secrets import is_secret
from llm_do.runtime.tools.traits import BuiltinContext
from llm_do.toolsets.filesystem.protection import Protection
from llm_do.toolsets.shell.command_judges import file_operations_judge, pattern_judge, read_only_judge
from llm_do.toolsets.shell.path_arguments import first_path_outside
from llm_do.toolsets.shell.sandbox.command_sandbox import CommandSandbox
from llm_do.toolsets.shell.shell_toolset import Shell, shell_toolset

if TYPE_CHECKING:
    from llm_do.compat.shell_toolset import (
        ShellConfig as ShellConfig,
        ShellRule as ShellRule,
        ShellToolset as ShellToolset,
    )
else:  # a type checker that saw it would take any name for one of this module's
    _LEFT_OVERS = ("ShellConfig", "ShellRule", "ShellToolset")
    __getattr__, _ = lazy_exports(__name__, dict.fromkeys(_LEFT_OVERS, "llm_do.compat.shell_toolset"))

__all__ = ["ShellConfig", "ShellRule", "ShellToolset", "configured", "shell_file_ops", "shell_readonly"]


def shell_readonly(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Run commands that only read in the project's folder: `ls`, `cat`, `grep`, `find`, `jq`, `git log` and others.

    Example:
        >>> from pathlib import Path
        >>> list(shell_readonly(BuiltinContext("shell_readonly", Path("."), Path("."))).tools)
        ['shell']
    """
    protection = _protection(ctx)
    sandbox = CommandSandbox(ctx.code_watch, ctx.sandbox, network=False, reads_only=True)
    return shell_toolset(Shell(protection.root, read_only_judge(protection), sandbox), name=ctx.name)


def shell_file_ops(ctx: BuiltinContext) -> FunctionToolset[Any]:
    """Run `ls`, and `mv` with approval, in the project's folder."""
    protection = _protection(ctx)
    sandbox = CommandSandbox(ctx.code_watch, ctx.sandbox, network=False)
    return shell_toolset(Shell(protection.root, file_operations_judge(protection), sandbox), name=ctx.name)


def configured(ctx: BuiltinContext, config: ShellOptions) -> FunctionToolset[Any]:
    """Build the toolset that a manifest's `{"type": "shell", ...}` describes; runs may share it.

    Commands that would run outside the project or see a secret, and invalid patterns, raise `UsageError`.
    """
    protection = _protection(ctx)
    if first_path_outside(protection.root, ".", [config.cwd]) is not None:
        raise UsageError(
            f"the toolset {ctx.name} has the `cwd` {config.cwd!r}, which is outside the project's folder",
            hint="Name a folder of the project: commands run nowhere else.",
        )
    for name in config.env:
        if is_secret(name):
            raise UsageError(
                f"the toolset {ctx.name} would show commands the variable {name}, which looks like a secret",
                hint="Take it out of `env`; secrets never reach a command.",
            )
    allowed = [_pattern(ctx, text) for text in config.allow]
    judge = (read_only_judge if config.read_only else pattern_judge)(protection, allowed, config.cwd)
    sandbox = CommandSandbox(ctx.code_watch, ctx.sandbox, network=config.network)
    return shell_toolset(Shell(protection.root, judge, sandbox, config.cwd, config.env, may_leave=True), name=ctx.name)


def _protection(ctx: BuiltinContext) -> Protection:
    return Protection(Root(ctx.project_root), ctx.code_watch.tree.code)


def _pattern(ctx: BuiltinContext, text: str) -> Pattern:
    try:
        return parse_pattern(f"shell({text})")
    except PatternError as error:
        raise UsageError(
            f"the toolset {ctx.name} can't read {text!r} in `allow`: {error}",
            hint="write a program and its first arguments, such as `git log`",
        ) from error
