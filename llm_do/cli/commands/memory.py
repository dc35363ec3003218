"""`llm-do memory`: list, show, forget."""

from __future__ import annotations

from typing import Annotated

import typer

from llm_do._startup.plain_commands import LeanGroup
from llm_do.cli.arguments import parameters as p
from llm_do.cli.arguments.completions import memories_here, threads_here
from llm_do.cli.arguments.project_first import ProjectFirst
from llm_do.cli.arguments.store_options import StoreOptions, with_store_options
from llm_do.formats.memory_scopes import MemoryScope

app = typer.Typer(
    cls=LeanGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="Show and forget what agents remember.",
)

Scope = Annotated[
    MemoryScope | None, typer.Option("--scope", help="Only what is kept for a thread, a user or the project.")
]
User = Annotated[str | None, typer.Option("--user", metavar="ID", help="Only this user's, also on threads.")]
Thread = Annotated[
    str | None, typer.Option("--thread", metavar="ID", help="Only this thread's.", autocompletion=threads_here)
]


@app.command("list", cls=ProjectFirst)
@with_store_options
def list_memories(
    where: StoreOptions,
    *,
    scope: Scope = None,
    user: User = None,
    thread: Thread = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="WORDS", help="Only those with one of these words, the best first."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N memories.")] = 20,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """List what agents remember, the latest first."""
    from llm_do.cli.actions.records import stored_memories as memories
    from llm_do.runtime.record.store.memories import MemoryFilter

    chosen = MemoryFilter(scope, user, thread, search=search)
    return memories.print_from_store(
        where,
        lambda store: memories.list_memories(store, chosen, limit=limit, as_json=form == "json"),
        verbatim=form == "json",
    )


@app.command(cls=ProjectFirst)
@with_store_options
def show(
    where: StoreOptions,
    *,
    memory: Annotated[
        str,
        typer.Argument(metavar="ID", help="The memory's id, or its beginning.", autocompletion=memories_here),
    ],
    scope: Scope = None,
    user: User = None,
    thread: Thread = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Show a memory: whose it is, which run wrote it, and its text."""
    from llm_do.cli.actions.records import stored_memories as memories
    from llm_do.runtime.record.store.memories import MemoryFilter

    chosen = MemoryFilter(scope, user, thread, id=memory)
    return memories.print_from_store(
        where,
        lambda store: memories.show_memories(store, chosen, as_json=form == "json"),
        verbatim=form == "json",
    )


@app.command(cls=ProjectFirst)
@with_store_options
def forget(
    where: StoreOptions,
    *,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="The memories' ids, or their beginnings.",
            show_default=False,
            autocompletion=memories_here,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Forget all that --scope, --user and --thread select, or everything.")
    ] = False,
    scope: Scope = None,
    user: User = None,
    thread: Thread = None,
    form: p.Form = "text",
    _debug: p.Debug = False,
) -> int:
    """Forget memories, and print what they said.

    \b
    Examples:
      llm-do memory forget 3f9a2c41
      llm-do memory forget --user ann --all
    """
    from llm_do.cli.actions.records import stored_memories as memories
    from llm_do.runtime.record.store.memories import MemoryFilter

    chosen = MemoryFilter(scope, user, thread)
    return memories.print_from_store(
        where,
        lambda store: memories.forget(store, chosen, ids or [], every=every, as_json=form == "json"),
        verbatim=form == "json",
    )
