"""A project's store, opened for one command, and how lists of what it holds are printed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.cli.process.streams import claim_stdout, warn
from llm_do.errors import LinkError, UsageError
from llm_do.files.local_folder import FOLDER
from llm_do.linker.sources.project_root import ProjectLocation
from llm_do.project.store_location import expand, is_database, is_own_file
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import with_count
from llm_do.threads.opened_stores import open_store
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.ui.terminal.text_width import text_width

if TYPE_CHECKING:
    from llm_do.cli.arguments.store_options import StoreOptions

__all__ = [
    "align_columns",
    "existing_store",
    "is_read_by_person",
    "local_time",
    "print_from_store",
    "shown_cost",
    "shown_tokens",
    "warn_of_more",
]

CELL_COLUMNS = 40
"""A wider cell shifts the rest of its own line only."""


def print_from_store(
    where: StoreOptions,
    lines_of: Callable[[SqlStore], Awaitable[Sequence[str]]],
    *,
    verbatim: bool = False,
    create: bool = False,
    title: bool = False,
) -> int:
    """Open the store that a command line names, and print the lines made from it.

    `verbatim` lines are for programs and never folded; `create` makes the store if nothing has been recorded yet;
    `title` says on stderr which project this is.
    """
    location = where.location()
    results = claim_stdout()
    store = existing_store(location, where.store, create=create)

    async def read() -> Sequence[str]:
        try:
            return await lines_of(store)
        finally:
            await store.aclose()

    lines = asyncio.run(read())
    if verbatim:
        results.write("".join(f"{line}\n" for line in lines))
        return 0
    if title:
        _write_title(location)
    results.write_lines(lines)
    return 0


def existing_store(location: ProjectLocation, place: str | None, *, create: bool = False) -> SqlStore:
    """Open a project's store, or the one at a place; a file that isn't there is an error unless it is to be created.

    The manifest is only asked for its store: what is recorded can be read whatever else is wrong with the project. A
    database that it names is only contacted if its folder is trusted: connecting tells whoever runs it about this
    machine, and the URL may have variables of the environment, of the location's `env_file`, which a person names, and
    of the folder's `.env`.

    Raises:
        LinkError: The manifest names a database, and the folder isn't trusted.
        UsageError: There is no such store, or `env_file` can't be read.
    """
    from llm_do.cli.actions.admission import is_trusted
    from llm_do.linker.sources.stated_settings import stated_store

    if place == "":
        raise UsageError("--store is empty", hint="Leave it out to use the project's store.")
    store = stated_store(location) if place is None else place
    if place is None and not is_own_file(store):
        _may_contact(location.root, store)
    elif place is not None and is_database(store) and not is_trusted(location.root):
        from llm_do.runtime.record.project_variables import project_variables

        # A person names it, and an untrusted folder's .env mustn't lead elsewhere.
        return open_store(location.root, expand(store, project_variables(None, location.env_file)))
    if location.env_file is not None and not is_database(store):
        from llm_do.models.providers.env_files import read_variables

        read_variables(None, location.env_file)  # nothing needs them, but a file that isn't there is a mistake
    if store == "memory":  # what was recorded before it said so
        store = "sqlite"
    file = location.root / FOLDER / "state.db" if store == "sqlite" else Path(store)
    if not create and "://" not in store and not is_database(store) and not file.exists():
        where = location.root if store == "sqlite" else file
        raise UsageError(f"nothing has been recorded in {where}", hint="Runs are recorded unless --no-record is given.")
    return open_store(location.root, store, env_file=location.env_file)


def _may_contact(root: Path, store: str) -> None:
    """Raise unless a store that a manifest names may be used."""
    if not is_database(store):
        raise UsageError(
            f"the `threads.store` of {root} is neither `sqlite`, `memory` nor the URL of a PostgreSQL database",
            hint="Correct it; `llm-do check` says where.",
        )
    from llm_do.cli.actions.admission import VARIABLE, is_trusted, trusting_command

    if not is_trusted(root):
        raise LinkError(
            f"{root} isn't trusted, and the database that it names was not contacted",
            hint=f"{trusting_command(root)} trusts it; {VARIABLE}=1 does so for one command.",
        )


def _write_title(location: ProjectLocation) -> None:
    from llm_do.linker.sources.stated_settings import project_title

    name = project_title(location)
    if name is not None:
        warn(sanitize(name))


def is_read_by_person() -> bool:
    """Whether results go to a terminal, where lists have a header; a command asks before it claims its stdout."""
    return os.isatty(1)


def local_time(moment: float) -> str:
    """A time in the local time zone, to the second; 0 is that of a run that hasn't begun."""
    return "-" if moment == 0 else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def shown_tokens(tokens: int | None) -> str:
    """Tokens in a list; it may not be known how many were used."""
    return "-" if tokens is None else with_count(tokens, "token")


def shown_cost(cost: float | None) -> str:
    """US dollars in a list; the price may not be known."""
    return "-" if cost is None else f"${cost:.4f}"


def warn_of_more(limit: int, what: str) -> None:
    """Say that a list is longer than what is shown of it."""
    shown = f"{limit} {what}s are" if limit > 1 else f"{what} is"
    warn(f"only the latest {shown} shown; --limit shows more")


def align_columns(rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> list[str]:
    """Rows as lines, safe for a terminal, with each column as wide as its widest cell; last cells may be missing.

    The header stands above rows that there are.
    """
    if rows and header:
        rows = [header, *rows]
    shown = [[sanitize(cell) for cell in row] for row in rows]
    sizes = [[text_width(cell) for cell in row] for row in shown]
    widths = [min(max(column), CELL_COLUMNS) for column in zip_longest(*sizes, fillvalue=0)]
    return [
        "  ".join(cell + " " * (width - size) for cell, size, width in zip(row, taken, widths, strict=False)).rstrip()
        for row, taken in zip(shown, sizes, strict=True)
    ]
