"""The arguments and options of `run` and `chat`, declared once each and grouped by what reads them.

What Python takes too is declared in `llm_do.runtime.session.run_options`; the rest is declared here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import typer

from llm_do._startup.frozen import frozen
from llm_do._startup.plain_commands import TIME, time_parser
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import agents_here, models_here, threads_here
from llm_do.runtime.session.run_options import EntryOptions, RuntimeOptions

__all__ = [
    "CommandOptions",
    "InputOptions",
    "OutputOptions",
    "SessionOptions",
    "command_options",
    "run_parameters",
    "with_run_options",
]

T = TypeVar("T")

_COMPLETIONS: dict[str, Callable[[str], list[str]]] = {"entry": agents_here, "thread_id": threads_here}


@frozen
class InputOptions:
    """Which project, and with which input.

    Args:
        project: The first argument: a project or, in a project's folder, the prompt.
        named: The project named with `--project`; then the first argument is the prompt.
    """

    project: str | None = None
    prompt: str | None = None
    input_json: Annotated[
        str | None, typer.Option("--input-json", metavar="JSON", help="The input, as a JSON object or string.")
    ] = None
    fields: Annotated[
        tuple[str, ...], typer.Option("--field", metavar="NAME=VALUE", help="One field of the input; repeatable.")
    ] = ()
    attach: Annotated[
        tuple[str, ...],
        typer.Option("--attach", metavar="FILE", help="Attach a file to the input, - for stdin; repeatable."),
    ] = ()
    named: p.OfProject = None
    trust: p.Trust = False


@frozen
class SessionOptions:
    """The models, approvals and limits of the session: its own options, and those that Python takes in this form."""

    shared: RuntimeOptions
    models: Annotated[
        tuple[str, ...],
        typer.Option(
            "-m",
            "--model",
            metavar="[NAME=]MODEL",
            help="The model of every agent, or of the one named; repeatable.",
            autocompletion=models_here,
        ),
    ] = ()
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Allow every call that needs approval.")] = False
    reject_all: Annotated[bool, typer.Option("--reject-all", help="Deny every call that needs approval.")] = False
    record_approvals: Annotated[
        bool, typer.Option("--record-approvals", help="Ask at the end whether to keep your answers in `llm-do.lock`.")
    ] = False
    budget_usd: Annotated[
        float | None,
        typer.Option("--budget-usd", metavar="USD", min=0.0, help="US dollars that the whole run may cost."),
    ] = None
    no_record: Annotated[bool, typer.Option("--no-record", help="Keep nothing of this run on disk.")] = False
    store: p.Store = None
    record_to: Annotated[
        str | None, typer.Option("--record", metavar="FILE", help="Record the model requests in a cassette, for tests.")
    ] = None
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="FILE", help="Answer model requests from a cassette; no provider is asked."),
    ] = None


@frozen
class OutputOptions:
    """What goes to stdout and stderr, and in which form."""

    output: Annotated[
        Literal["text", "json", "events"],
        typer.Option("--format", help="Print the result as text or JSON, or events as JSON lines as they happen."),
    ] = "text"
    verbose: Annotated[
        int,
        typer.Option(
            "-v", "--verbose", count=True, help="Show progress on stderr; -vv also streams text.", show_default=False
        ),
    ] = 0
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show only errors on stderr.")] = False
    debug: p.Debug = False
    no_color: p.NoColor = False

    @property
    def verbosity(self) -> int:
        """-1 for errors only, 0, 1 for lines, 2 for text too."""
        return -1 if self.quiet else self.verbose


@frozen
class CommandOptions:
    """A command line of `run` or `chat`, as its readers take it."""

    input: InputOptions
    call: EntryOptions
    session: SessionOptions
    output: OutputOptions
    otel: Annotated[
        bool, typer.Option("--otel", help="Export OpenTelemetry spans, as configured by the OTEL_* variables.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the project and show what would run.")] = False

    @property
    def entry(self) -> str | None:
        """The callable to run instead of the project's entry."""
        return cast("str | None", self.call.get("entry"))


def with_run_options(*, prompt: str, alone: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the arguments and options of a run, in addition to its own."""
    project = f"{p.PROJECT_HELP} There, an argument that is none of these is {alone}."
    arguments = [_argument("project", project), _argument("prompt", prompt)]

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        parameters = list(signature(command, eval_str=True).parameters.values())[1:]
        own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]

        @wraps(command)
        def read(**values: Any) -> int:
            rest = {each.name: values.pop(each.name) for each in own}
            return command(command_options(values), **rest)

        read.__signature__ = Signature([*arguments, *own, *run_parameters()])  # type: ignore[attr-defined]
        return read

    return decorate


def command_options(values: Mapping[str, Any]) -> CommandOptions:
    """Group the values of a command's arguments and options."""

    def group(kind: type[T], *first: object) -> T:
        own = {each.name: values[each.name] for each in _own(kind)}
        return kind(*first, **{name: tuple(own[name]) if each == [] else each for name, each in own.items()})

    def shared(kind: type[Any]) -> dict[str, Any]:
        return {each.name: values[each.name] for each in _shared(kind)}

    return group(
        CommandOptions,
        group(InputOptions, values["project"], values["prompt"]),
        shared(EntryOptions),
        group(SessionOptions, shared(RuntimeOptions)),
        group(OutputOptions),
    )


def run_parameters() -> Iterator[Parameter]:
    """Every option, in the order of the help."""
    yield from _own(InputOptions)
    yield from _shared(EntryOptions)
    yield from _own(SessionOptions)
    yield from _shared(RuntimeOptions)
    yield from _own(OutputOptions)
    yield from _own(CommandOptions)


@cache
def _own(group: type[Any]) -> tuple[Parameter, ...]:
    """The options that the fields of a group declare."""
    hints = get_type_hints(group, include_extras=True)
    found: list[Parameter] = []
    for each in fields(group):
        if get_origin(hints[each.name]) is Annotated:
            kind, info = get_args(hints[each.name])
            taken = Annotated[list[str] if each.default == () else kind, info]
            found.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=taken))
    return tuple(found)


@cache
def _shared(kind: type[Any]) -> tuple[Parameter, ...]:
    """The options that Python takes too, as Typer takes them."""
    found: list[Parameter] = []
    for name, declared in kind.__annotations__.items():
        value, option = get_args(declared)
        if option.flags:
            several, timed = value == Sequence[str] | None, option.metavar == TIME
            more = "; repeatable." if several else ", or a time such as 5m or 1h30m." if timed else "."
            info = typer.Option(
                *option.flags,
                metavar=option.metavar,
                min=None if timed else option.minimum,
                parser=time_parser(option.minimum) if timed else None,
                help=option.help.rstrip(".") + more,
                autocompletion=_COMPLETIONS.get(name),
            )
            accepted = list[str] | None if several else str | None if isinstance(value, ForwardRef) else value
            annotation = Annotated[accepted, info]
            found.append(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return tuple(found)


def _argument(name: str, text: str) -> Parameter:
    info = typer.Argument(metavar=name.upper(), help=text, show_default=False)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, info])
