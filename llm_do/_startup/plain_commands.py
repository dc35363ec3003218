"""Commands whose arguments are read without pydantic, which Typer would import for each of them.

That import costs as much as all the rest of a start. The few types of our options are converted here; any other type is
left to Typer, and so are all of them if its internals change, which is slower but not wrong.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["BAD_USAGE", "TIME", "LeanCommand", "LeanGroup", "help_text", "make_lean", "read_options", "time_parser"]

read_options: dict[str, object] = {}
"""What the command line says, by the names of the command's parameters, once it has been read."""

TIME = "TIME"
"""The metavar of an option whose value is a number of seconds, or a time with units such as `1h30m`."""

BAD_USAGE = cast("type[Exception]", typer.BadParameter.__base__)
"""What Typer raises for invalid arguments; it exports only this class's relatives, under a name that has moved."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_HYPHEN = "\u2011"
"""Where a line is never broken."""

_LEAST, _NARROW = 20, 58
"""The fewest columns of a help text, and those from which any option's text is beside its name."""

_INNER = re.compile(r"(?<=\w)-(?=\w)")
_REQUIRED = re.compile(r"\{(.*?)\}((?:\.\.\.)?)")
"""A required argument in a line of usage, which Typer puts in braces."""

_TYPE = re.compile(r"(?<=[\w\].]) <[^<>]*>$")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class LeanCommand(TyperCommand):
    """A command for `typer.Typer.command(cls=...)`."""

    def get_help(self, ctx: Any) -> str:
        """Return the help text."""
        return help_text(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a fault names the command, as Typer's about an option without its value don't."""
        make_lean(self.get_params(ctx))
        read_options.clear()
        try:
            left = super().parse_args(ctx, args)
        except BAD_USAGE as error:
            fault: Any = error
            fault.ctx = fault.ctx or ctx
            raise
        read_options.update(ctx.params)
        return left

    def make_parser(self, ctx: Any) -> Any:
        """Accept `--output FORM` and `--json` wherever there is `--format`, without showing them in the help.

        A command whose `--output` is something else, such as a file, keeps it.
        """
        parser = super().make_parser(ctx)
        params: list[Any] = [*self.get_params(ctx)]
        is_taken = any("--output" in param.opts for param in params)
        for param in params:
            if "--format" in param.opts:
                if not is_taken:
                    parser.add_option(param, ["--output"], param.name)
                parser.add_option(param, ["--json"], param.name, action="store_const", const="json")
        return parser


class LeanGroup(TyperGroup):
    """A command with commands below it, for `typer.Typer(cls=...)`."""

    def get_help(self, ctx: Any) -> str:
        """Return the help text."""
        return help_text(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments in front of the command."""
        make_lean(self.get_params(ctx))
        return super().parse_args(ctx, args)


def help_text(command: Any, ctx: Any) -> str:
    """The help text of a command: lines aren't broken at hyphens, and arguments are shown without their Python types.

    Args:
        command: The command.
        ctx: Typer's context.

    Returns:
        The text, as wide as the terminal.
    """
    formatter = ctx.make_formatter()
    formatter.width = max(min(formatter.width, shutil.get_terminal_size().columns - 2), _LEAST)
    write_usage, write_text, write_dl = formatter.write_usage, formatter.write_text, formatter.write_dl

    def usage(prog: str, args: str = "") -> None:
        write_usage(
            prog, _REQUIRED.sub(lambda found: found[1] if found[1].endswith("...") else found[1] + found[2], args)
        )

    def rows(entries: Iterable[tuple[str, str]], *rest: Any, **options: Any) -> None:
        lines = [(name if name[0] == "-" else _TYPE.sub("", name), _unbroken(text)) for name, text in entries]
        if formatter.width < _NARROW and max((len(name) for name, _ in lines), default=0) > formatter.width // 3:
            options = {"col_max": 4, **options}  # texts below the names
        write_dl(lines, *rest, **options)

    def paragraph(text: str) -> None:
        write_text(_unbroken(text))

    formatter.write_usage, formatter.write_text, formatter.write_dl = usage, paragraph, rows
    command.format_help(ctx, formatter)
    return str(formatter.getvalue()).rstrip("\n").replace(_HYPHEN, "-")


def _unbroken(text: str) -> str:
    return _INNER.sub(_HYPHEN, text)


def make_lean(params: Iterable[Any]) -> None:
    """Let parameters convert their own values."""
    for param in params:
        if getattr(param, "_runtime_param", param) is None and hasattr(param, "type_descriptor"):
            param._runtime_param = _Plain(param.type_descriptor.annotation, param.type_descriptor.parameter_info)


class _Plain:
    """Converts the values of one parameter.

    Args:
        annotation: Their type.
        info: The parameter's declaration.
    """

    def __init__(self, annotation: Any, info: Any) -> None:
        self._annotation = annotation
        self._info = info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a value from the command line; None is none."""
        several = bool(param.multiple) or param.nargs == -1
        if value is None:
            return () if several else None
        kind = get_args(self._annotation)[0] if several else self._annotation
        if not several:
            return self._one(kind, value, param, ctx)
        return [self._one(kind, item, param, ctx) for item in value]

    def _one(self, kind: Any, value: Any, param: Any, ctx: Any) -> Any:
        if self._info.parser is not None:
            try:
                return self._info.parser(value)
            except typer.BadParameter as error:
                raise typer.BadParameter(error.message, ctx=ctx, param=param) from error
        if kind is str or isinstance(value, bool):
            return value
        if kind is int or kind is float:
            return self._number(kind, value, param, ctx)
        if get_origin(kind) is Literal:
            choices = get_args(kind)
            if value not in choices:
                fault = f"{value!r} is not one of {', '.join(map(repr, choices))}."
                raise typer.BadParameter(fault, ctx=ctx, param=param)
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)

    def _number(self, kind: type[int] | type[float], value: Any, param: Any, ctx: Any) -> int | float:
        noun = "a whole number" if kind is int else "a number"
        try:
            number = kind(value)
        except ValueError as error:
            raise typer.BadParameter(f"{value!r} is not {noun}.", ctx=ctx, param=param) from error
        if kind is float and not math.isfinite(number):
            raise typer.BadParameter(f"{value!r} is not {noun}.", ctx=ctx, param=param)
        if self._info.min is not None and number < self._info.min:
            raise typer.BadParameter(f"{value} is less than {self._info.min:g}.", ctx=ctx, param=param)
        return number


def time_parser(minimum: float | None) -> Callable[[Any], float]:
    """A function that converts the value of an option declared with `TIME`, for `typer.Option(parser=...)`.

    Args:
        minimum: The least number of seconds.

    Returns:
        A function that takes a number of seconds, or a time with units, and raises `typer.BadParameter`.

    Example:
        >>> parse = time_parser(None)
        >>> parse("90"), parse("1h30m"), parse("500ms")
        (90.0, 5400.0, 0.5)
    """

    def parse(value: Any) -> float:
        text = str(value).strip().lower()
        try:
            whole = _TIME.fullmatch(text)
            seconds = sum(float(n) * _UNITS[unit] for n, unit in _PART.findall(text)) if whole else float(text)
        except ValueError:
            seconds = math.nan
        if not math.isfinite(seconds):
            raise typer.BadParameter(f"{value!r} is not a time, such as 90, 90s, 5m or 1h30m.")
        if minimum is not None and seconds < minimum:
            raise typer.BadParameter(f"{value} is less than {minimum:g}.")
        return seconds

    return parse
