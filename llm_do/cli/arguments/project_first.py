"""Commands whose first argument may be the project, in front of their other arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_do._startup.plain_commands import LeanCommand
from llm_do.cli.arguments.target import user_path
from llm_do.errors import UsageError
from llm_do.linker.sources.project_root import find_project
from llm_do.text.sanitizer import sanitize, shell_word

__all__ = ["ProjectFirst", "is_project"]


class ProjectFirst(LeanCommand):
    """A command with the argument PROJECT in front of others, which are what a single argument usually is.

    The first argument is the project if it names one (a folder with a manifest or agents, a manifest, an `.agent` file)
    and the command doesn't need it for something else. With `--project` it never is.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with an empty one in the project's place if there is none."""
        params = self.get_params(ctx)
        places, named = _arguments(args, params)
        others = [param for param in params if param.param_type_name == "argument" and param.name != "project"]
        needed = [param for param in others if param.required]
        required = len(needed)
        if 0 < len(places) <= required and not (named or ctx.resilient_parsing or {"-h", "--help"}.intersection(args)):
            _check_only_project(ctx, args[places[0]], needed)
        if places and (named or len(places) <= required or not is_project(args[places[0]])):
            args = [*args[: places[0]], "", *args[places[0] :]]
        elif ctx.resilient_parsing and not places and others:
            args = [*args, ""]  # so that the shell completes what a single argument usually is
        left = super().parse_args(ctx, args)
        ctx.params["project"] = ctx.params.get("project") or None
        return left


def _check_only_project(ctx: Any, word: str, needed: Sequence[Any]) -> None:
    """Report a project in front of too few arguments where no other project could be meant."""
    if not is_project(word):
        return
    try:
        find_project(Path.cwd())
    except (OSError, UsageError):
        names = " ".join(param.metavar or param.name.upper() for param in needed)
        raise UsageError(
            f"an argument is missing: {sanitize(word)} is the project",
            hint=f"Write: {ctx.command_path} {shell_word(word)} {names}",
        ) from None


def _arguments(args: Sequence[str], params: Sequence[Any]) -> tuple[list[int], bool]:
    """Where the words are that are neither an option nor its value, and whether the project is named by an option."""
    alone = {name for param in params if getattr(param, "is_flag", False) for name in param.opts} | {"--json"}
    known = {name for param in params if param.param_type_name == "option" for name in param.opts} | {"--output"}
    places: list[int] = []
    named = False
    index = 0
    while index < len(args):
        word = args[index]
        if word == "--":
            places += range(index + 1, len(args))
            break
        if word == "-" or not word.startswith("-"):
            places.append(index)
        else:
            named = named or word.partition("=")[0] == "--project" or word.startswith("-p")
            index += word in known and word not in alone
        index += 1
    return places, named


def is_project(word: str) -> bool:
    """Whether an argument names a project; an empty one names nothing, though as a path it is the current folder.

    Example:
        >>> is_project("shell"), is_project(""), is_project("."), is_project("main.agent")
        (False, False, True, True)
    """
    if not word:
        return False
    if word in (".", "..") or word.endswith((".agent", ".json")):
        return True
    path = user_path(word)
    if not os.path.isdir(path):
        return False
    if os.path.isfile(path / "project.json"):
        return True
    try:
        return any(entry.name.endswith(".agent") for entry in os.scandir(path))
    except OSError:
        return False
