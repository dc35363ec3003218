"""`llm-do threads`: list, show, config, set, fork, branch, delete, export, import."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import threads_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.store_options import StoreOptions, with_store_options

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Show, change and copy conversations.",
)

User = Annotated[str | None, typer.Option("--user", metavar="ID", help="The thread's user.")]
Thread = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The thread's id.",
        autocompletion=threads_here,
    ),
]


@app.command("list", cls=ProjectFirst)
@with_store_options
def list_threads(
    where: StoreOptions,
    *,
    user: User = None,
    every_user: Annotated[bool, typer.Option("--all", help="Include the threads of every user.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N threads.")] = 20,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List threads, the most recent first."""
    from llm_do.cli.actions.records import stored_threads as threads

    location = where.location(quiet=True)
    as_json, headed = form == "json", threads.is_read_by_person()
    return threads.print_from_store(
        where,
        lambda store: threads.list_threads(
            store, location, user, every_user=every_user, limit=limit, as_json=as_json, headed=headed
        ),
        verbatim=form == "json",
    )


@app.command(cls=ProjectFirst)
@with_store_options
def show(
    where: StoreOptions,
    *,
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="THREAD",
            help="The thread's id; by default the most recent thread.",
            show_default=False,
            autocompletion=threads_here,
        ),
    ] = None,
    user: User = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show only the latest N messages.")] = 20,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Show a thread: its settings, its state, its latest messages."""
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(
        where,
        lambda store: threads.show_thread(store, thread, user, limit=limit, as_json=form == "json"),
        verbatim=form == "json",
    )


@app.command(cls=ProjectFirst)
@with_store_options
def config(
    where: StoreOptions,
    *,
    thread: Thread,
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Print a thread's settings as JSON."""
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(where, lambda store: threads.show_config(store, thread, user), verbatim=True)


@app.command("set", cls=ProjectFirst)
@with_store_options
def set_config(
    where: StoreOptions,
    *,
    thread: Thread,
    values: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE", help="A setting: JSON or text; an empty value removes it."),
    ],
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Change a thread's settings.

    \b
    Examples:
      llm-do threads set desk-7 model=openai:gpt-5-mini history_limit=20
      llm-do threads set desk-7 model_settings.temperature=0.2
    """
    from llm_do.cli.actions.records import stored_threads as threads

    location = where.location(quiet=True)
    return threads.print_from_store(
        where,
        lambda store: threads.set_config(store, thread, values, user, location),
        verbatim=True,
        create=True,
    )


@app.command(cls=ProjectFirst)
@with_store_options
def fork(
    where: StoreOptions,
    *,
    thread: Thread,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new thread's id.")],
    user: User = None,
    at: Annotated[int | None, typer.Option("--at", metavar="N", min=0, help="Copy only the first N messages.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Start a new thread with the history of another one."""
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(where, lambda store: threads.fork(store, thread, new, user, at=at))


@app.command(cls=ProjectFirst)
@with_store_options
def branch(
    where: StoreOptions,
    *,
    thread: Thread,
    user: User = None,
    at: Annotated[int | None, typer.Option("--at", metavar="N", min=0, help="Continue after message N.")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="MESSAGE", help="Continue after this message.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Continue from an earlier message. Later messages are kept as a branch. Without options, list the branches."""
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(where, lambda store: threads.branch(store, thread, user, at=at, to=to))


@app.command(cls=ProjectFirst)
@with_store_options
def delete(
    where: StoreOptions,
    *,
    thread: Thread,
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Delete a thread, its messages and its runs' record.

    The record is their events, and the files that are kept to undo them.
    """
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(where, lambda store: threads.delete(store, thread, user))


@app.command(cls=ProjectFirst)
@with_store_options
def export(
    where: StoreOptions,
    *,
    thread: Thread,
    user: User = None,
    _debug: p.Debug = False,
) -> int:
    """Write a thread to stdout, one JSON record a line."""
    from llm_do.cli.actions.records import stored_threads as threads

    return threads.print_from_store(where, lambda store: threads.export(store, thread, user), verbatim=True)


@app.command("import", cls=ProjectFirst)
@with_store_options
def import_thread(
    where: StoreOptions,
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `export` wrote; - is stdin.")],
    user: User = None,
    name: Annotated[str | None, typer.Option("--as", metavar="ID", help="Store the thread under this id.")] = None,
    _debug: p.Debug = False,
) -> int:
    """Import an exported thread. The file is validated first; an existing thread is never changed."""
    from llm_do.cli.actions.records import stored_threads as threads

    text = threads.read_export(file)
    return threads.print_from_store(
        where,
        lambda store: threads.import_thread(store, text, user, name=name, source=file),
        create=True,
    )
