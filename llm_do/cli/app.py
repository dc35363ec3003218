"""The table of commands; a command's module is imported when the command is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from llm_do import __version__
from llm_do._startup.code_access import Access, closed_folders
from llm_do._startup.plain_commands import BAD_USAGE, help_text, make_lean, read_options
from llm_do.cli.actions import failure
from llm_do.cli.process.signals import received
from llm_do.cli.process.streams import claim_stdout, stdout_fault, warn
from llm_do.errors import UsageError

__all__ = ["ACCESS", "COMMANDS", "access_of", "command_module", "run"]

COMMANDS: dict[str, str] = {
    "run": "Run a project.",
    "map": "Run an entry on many inputs, several at once.",
    "worker": "Run the inputs that are on the queue, alongside other workers.",
    "resume": "Continue a durable run where it stopped.",
    "chat": "Chat with a project over several turns.",
    "check": "Check a project and report every problem.",
    "test": "Run a project's tests, from recordings, scripts or models.",
    "graph": "Show agents, tools and approvals as a tree or a graph.",
    "tools": "List the tools that an agent's model sees.",
    "approvals": "List, revoke and explain approvals.",
    "lock": "Record in llm-do.lock what MCP servers offer, or compare with it.",
    "init": "Create a small project that runs.",
    "import": "Convert Claude Code's subagents and skills.",
    "trust": "Trust a folder, so that its code runs without a question.",
    "doctor": "Check this machine's setup.",
    "models": "List available models, or download the local one.",
    "threads": "Show, change and copy conversations.",
    "memory": "Show and forget what agents remember.",
    "runs": "List, show and compare recorded runs.",
    "undo": "Restore the files that a run's tools changed.",
    "mcp": "Serve a project's agents and flows to an MCP client.",
    "serve": "Show and start runs in a browser, and serve an HTTP interface.",
    "schema": "Print the JSON Schema of project files, for editors.",
}
"""Name to the line that `--help` shows, with which the command's help begins; `command_module` says where it is."""

ACCESS: Mapping[str, Access] = {
    "run": "runs",
    "map": "runs",
    "worker": "runs",
    "resume": "runs",
    "chat": "runs",
    "mcp": "runs",
    "serve": "runs",
    "check": "looks",
    "test": "runs",
    "graph": "looks",
    "tools": "looks",
    "lock": "looks",
    "approvals list": "reads",
    "approvals revoke": "reads",
    "approvals accept": "reads",
    "approvals pending": "reads",
    "approvals show": "reads",
    "approvals answer": "runs",  # with --resume
    "approvals explain": "looks",
    "approvals replay": "looks",
    "init": "reads",
    "import": "reads",
    "trust": "reads",
    "doctor": "reads",
    "models": "reads",
    "threads": "reads",
    "memory": "reads",
    "runs": "reads",
    "undo": "reads",
    "schema": "reads",
}
"""What each command does with a project: it runs it, looks at what it is made of, or never needs its code.

One that isn't listed reads, and can import nothing of a project; `llm_do.cli.actions.admission` asks for the others.
"""

_SETUP = {name: name for name in ("doctor", "init", "models", "schema", "trust")} | {"import": "importing"}
"""The commands in `llm_do.cli.commands.setup`, with their modules: `import` is a word of Python's own."""

_DURABLE = ("map", "resume", "worker")
"""The commands in `llm_do.cli.commands.durable`."""


class Commands(TyperGroup):
    """The commands of the table, of which only the requested one is imported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS, cast("Any", None))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command from its module."""
        if cmd_name not in COMMANDS:
            return None
        command = get_command(import_module(command_module(cmd_name)).app)
        command.name = cmd_name
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command."""
        make_lean(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def get_help(self, ctx: Any) -> str:
        """Return the help text."""
        return help_text(self, ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_root = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"llm-do {__version__}")
        raise typer.Exit


@_root.callback()
def _options(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run projects made of language-model agents and Python code."""


def run(args: Sequence[str]) -> int:
    """Run one command line.

    Args:
        args: The arguments, without the program's name.

    Returns:
        The exit code.
    """
    read_options.clear()
    for arg in args:
        if not arg.isascii() and _is_broken(arg):
            from llm_do.text.sanitizer import sanitize

            fault = UsageError(f"the argument {sanitize(arg)} is not UTF-8 text", hint="Write it in UTF-8.")
            return failure.report(fault, failure.requested_output(args), claim_stdout())
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"]
    access = access_of(args)
    if access != "reads" or args[:1] == ["models"]:
        fault = _configuration_fault(args, access)
        if fault is not None:
            return failure.report(fault, failure.requested_output(args), claim_stdout())
    with closed_folders(access):
        return _carry_out(args)


def command_module(name: str) -> str:
    """Return the name of the module that holds a command.

    Example:
        >>> command_module("run"), command_module("doctor")
        ('llm_do.cli.commands.run', 'llm_do.cli.commands.setup.doctor')
    """
    if name in _SETUP:
        return f"llm_do.cli.commands.setup.{_SETUP[name]}"
    return f"llm_do.cli.commands.durable.{name}" if name in _DURABLE else f"llm_do.cli.commands.{name}"


def access_of(args: Sequence[str]) -> Access:
    """Return what the command of a command line does with a project.

    Example:
        >>> access_of(["approvals", "explain", "send"]), access_of(["approvals", "list"]), access_of(["--version"])
        ('looks', 'reads', 'reads')
    """
    words = [arg for arg in args if not arg.startswith("-")][:2]
    return ACCESS.get(" ".join(words)) or ACCESS.get(words[0] if words else "", "reads")


def _configuration_fault(args: Sequence[str], access: Access) -> UsageError | None:
    """Warn of faults in the person's configuration; return one that must be mended before anything runs."""
    from llm_do.models.user_config import load_user_config

    config = load_user_config()
    for fault in config.faults:
        if fault.grave and access == "runs":
            return UsageError(fault.message, hint=fault.hint, file=str(config.file), line=fault.line)
        if fault.grave or not {"-q", "--quiet"}.intersection(args):
            from llm_do.ui.reports.error_text import paragraph

            text = paragraph(fault.message, file=str(config.file), line=fault.line, hint=fault.hint, label="warning")
            warn(text)
    return None


def _carry_out(args: Sequence[str]) -> int:
    try:
        code = get_command(_root).main(list(args), prog_name="llm-do", standalone_mode=False)
    except BAD_USAGE as error:
        return received() or _usage(error, args)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (whatever it is, it is reported in a paragraph)
        if (code := received()) is not None:
            return code
        fault = stdout_fault(error) or failure.as_llm_do_error(error)
        return failure.report(fault, "text", claim_stdout(), debug="--debug" in args)
    return code if isinstance(code, int) else 0


def _is_broken(arg: str) -> bool:
    """Whether an argument has bytes that aren't text; the name of an existing file may."""
    try:
        arg.encode()
    except UnicodeEncodeError:
        return not os.path.lexists(arg)
    return False


def _usage(error: Any, args: Sequence[str]) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        warn(error.format_message())
        return 2
    from llm_do.cli.arguments.usage_hints import usage_error

    return failure.report(usage_error(error, args), failure.requested_output(args), claim_stdout())
