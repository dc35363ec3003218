"""`llm-do threads`: list, show, config, set, fork, branch, delete, export, import."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.plain_commands import LeanCommand, LeanGroup

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Look at conversations, change and copy them.",
)

User = Annotated[str | None, typer.Option("--user", metavar="ID", help="Whose thread it is.")]
Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]


@app.command("list", cls=LeanCommand)
def list_threads(
    project: p.OfProject = None,
    user: User = None,
    every_user: Annotated[bool, typer.Option("--all", help="Of every user.")] = False,
    as_json: p.AsJson = False,
    _debug: p.Debug = False,
) -> int:
    """List threads, the latest first."""
    return _do(project, "list_threads", user, every_user=every_user, as_json=as_json)


@app.command(cls=LeanCommand)
def show(
    thread: Annotated[
        str | None,
        typer.Argument(metavar="THREAD", help="The thread's id; by default the thread used last.", show_default=False),
    ] = None,
    project: p.OfProject = None,
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Messages at most, the latest.")] = 20,
    as_json: p.AsJson = False,
    _debug: p.Debug = False,
) -> int:
    """Show a thread: its settings, its state, its latest messages."""
    return _do(project, "show_thread", thread, user, limit=limit, as_json=as_json)


@app.command(cls=LeanCommand)
def config(thread: Thread, project: p.OfProject = None, user: User = None, _debug: p.Debug = False) -> int:
    """Print a thread's settings as JSON."""
    return _do(project, "show_config", thread, user)


@app.command("set", cls=LeanCommand)
def set_config(
    thread: Thread,
    values: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE", help="A setting; its value is JSON or text, empty takes it away."),
    ],
    project: p.OfProject = None,
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Change a thread's settings.

    \b
    Examples:
      llm-do threads set desk-7 model=openai:gpt-5-mini history_limit=20
      llm-do threads set desk-7 model_settings.temperature=0.2
    """
    return _do(project, "set_config", thread, values, user)


@app.command(cls=LeanCommand)
def fork(
    thread: Thread,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Id of the new thread.")],
    project: p.OfProject = None,
    user: User = None,
    at: Annotated[int | None, typer.Option("--at", min=0, help="Keep so many messages.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Begin a new thread that shares another one's past."""
    return _do(project, "fork", thread, new, user, at=at)


@app.command(cls=LeanCommand)
def branch(
    thread: Thread,
    project: p.OfProject = None,
    user: User = None,
    at: Annotated[int | None, typer.Option("--at", min=0, help="Go back to so many messages.")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="MESSAGE", help="Go to this message or branch.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Go on from an earlier message. What came after it is kept as a branch. Without options, list the branches."""
    return _do(project, "branch", thread, user, at=at, to=to)


@app.command(cls=LeanCommand)
def delete(
    thread: Thread,
    project: p.OfProject = None,
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Delete a thread, its messages and the journal of its runs."""
    return _do(project, "delete", thread, user)


@app.command(cls=LeanCommand)
def export(thread: Thread, project: p.OfProject = None, user: User = None, _debug: p.Debug = False) -> int:
    """Write a thread to stdout, one JSON record a line."""
    return _do(project, "export", thread, user)


@app.command("import", cls=LeanCommand)
def import_thread(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; - is stdin.")],
    project: p.OfProject = None,
    user: User = None,
    name: Annotated[str | None, typer.Option("--as", metavar="ID", help="Another id for the thread.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Read a thread that was exported. It is checked, and a thread that exists is left alone."""
    from llm_do.cli.actions.stored_data import read_export

    return _do(project, "import_thread", read_export(file), user, name=name, source=file)


def _do(project: str | None, what: str, *args: Any, **options: Any) -> int:
    from llm_do.cli.actions import stored_data

    work: Any = getattr(stored_data, what)
    return stored_data.carry_out(project, work, *args, **options)
