"""What `threads.store` and `--store` say: the project's own file, memory, a PostgreSQL database, or another file.

A URL may contain `${NAME}`, a variable of the environment or of the project's `.env`. Its value isn't shown anywhere,
as a URL may hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from llm_do._extras import has_extra, missing_extra
from llm_do._startup.option_names import option_name
from llm_do.errors import UsageError
from llm_do.formats.variables import stray_reference

if TYPE_CHECKING:
    from llm_do.project.project import Project

__all__ = ["expand", "is_database", "is_own_file", "shared_name", "variables", "with_store", "without_password"]

_SCHEMES = ("postgresql://", "postgres://")
_PASSWORD = re.compile(r"(://[^/?#:]*:|[?&][a-z]*password=)((?<=:).*(?=@)|(?<==)[^&#]*)", re.IGNORECASE)
"""What comes before a password in a URL, and the password."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")


def is_database(store: str) -> bool:
    """Whether a text names a database, as far as one can tell without its variables.

    Example:
        >>> is_database("postgresql://db/threads"), is_database("${DATABASE_URL}"), is_database("sqlite")
        (True, True, False)
    """
    return store.startswith(_SCHEMES) or _VARIABLE.match(store) is not None


def is_own_file(store: str) -> bool:
    """Whether a project's records are in its own file: `memory` keeps threads only."""
    return store in ("sqlite", "memory")


def shared_name(project: Project) -> str:
    """What tells a project from others in a store that several share: its name, or that of its folder."""
    return project.name or project.root.resolve().name


def variables(store: str) -> list[str]:
    """The variables that a text refers to and that have no default."""
    return [found[1] for found in _VARIABLE.finditer(store) if found[2] is None] if is_database(store) else []


def expand(store: str, environ: Mapping[str, str]) -> str:
    """Return the URL of a database, with the values of its variables.

    Those of user and password may contain any character; a variable that is all there is holds a URL.

    Raises:
        UsageError: A variable isn't set, a `${` is no reference, or the result isn't the URL of a PostgreSQL database.

    Example:
        >>> expand("postgresql://app:${DB_PASSWORD}@db/threads", {"DB_PASSWORD": "a/b"})
        'postgresql://app:a%2Fb@db/threads'
        >>> expand("postgresql://${DB_HOST:-localhost}/threads", {})
        'postgresql://localhost/threads'
    """
    for name in variables(store):
        if not environ.get(name):
            raise UsageError(
                f"the environment variable {name}, which the store's URL refers to, is not set",
                hint="Set it before llm-do starts, in the project's .env, or in the file that "
                f"{option_name('--env-file')} names.",
            )
    if (stray := stray_reference(store)) is not None:
        raise UsageError(
            f"`{stray}` in the store's URL is no reference to a variable", hint="Write `${NAME}` or `${NAME:-default}`."
        )

    def value(found: re.Match[str]) -> str:
        return environ.get(found[1]) or found[2] or ""

    login, at, rest = store.rpartition("@")
    url = _VARIABLE.sub(lambda found: quote(value(found), safe=""), login) + at + _VARIABLE.sub(value, rest)
    if not url.startswith(_SCHEMES):
        raise UsageError(
            f"{', '.join(variables(store)) or 'the store'} doesn't hold the URL of a PostgreSQL database",
            hint="Write it as `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.",
        )
    return url


def without_password(store: str) -> str:
    """Return what names a store as messages may show it: a password that is written out is left out.

    Example:
        >>> without_password("postgresql://app:tr0ub4dor@db/threads?sslmode=require")
        'postgresql://app:PASSWORD@db/threads?sslmode=require'
        >>> without_password("postgresql://app:${DB_PASSWORD}@db/threads"), without_password("runs/a:b@c.db")
        ('postgresql://app:${DB_PASSWORD}@db/threads', 'runs/a:b@c.db')
    """
    if not is_database(store):
        return store
    return _PASSWORD.sub(lambda found: found[0] if _is_variable(found[2]) else f"{found[1]}PASSWORD", store)


def _is_variable(text: str) -> bool:
    """Whether a text is a variable without a default of its own."""
    found = _VARIABLE.fullmatch(text)
    return found is not None and not found[2]


def with_store(project: Project, store: str | None) -> Project:
    """Return a project whose store is another one; None leaves it.

    Raises:
        UsageError: The store is in PostgreSQL, and the extra for it isn't installed.
    """
    if store is not None and is_database(store) and not has_extra("postgres"):
        missing = missing_extra("postgres", "a store in PostgreSQL")
        raise UsageError(missing.message, hint=missing.hint)
    return project if store is None else replace(project, threads=replace(project.threads, store=store))
