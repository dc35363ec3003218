"""Where a PostgreSQL store is: its URL taken apart, how it is named in messages, and how connections are opened."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_do._extras import has_extra, missing_extra
from llm_do._startup.frozen import frozen
from llm_do.errors import StoreError, UsageError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["SCHEMA", "Target", "target_of"]

SCHEMA = "llm_do"
"""The schema of a store whose URL names none."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

_DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 10,
    # A connection over which nothing comes back is given up after half a minute.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

_SESSION = b"""
SET client_min_messages = warning;
SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
"""What every connection begins with: the server notices soon that a client is gone, and what it commits is on disk."""


@frozen
class Target:
    """A store in a PostgreSQL database.

    Args:
        name: How it is named in messages: its URL without password and options.
        parameters: What connections are opened with.
        schema: The schema of its tables.
    """

    name: str
    parameters: Mapping[str, Any]
    schema: str

    def connect(self, purpose: str) -> Connection[Any]:
        """Open a connection, on which every statement is a transaction of its own unless one is begun.

        Raises:
            psycopg.Error: It can't be opened.
            StoreError: The database can't hold Unicode text.
        """
        import psycopg
        from psycopg.conninfo import make_conninfo

        parameters = {
            **_DEFAULTS,
            "application_name": f"llm-do {purpose}",
            **self.parameters,
            "client_encoding": "utf8",
        }
        connection = psycopg.connect(make_conninfo(**parameters), autocommit=True)
        try:
            row = connection.execute("SHOW server_encoding").fetchone()
            if row is None or row[0] != "UTF8":
                raise StoreError(
                    f"{self.name} can't be used: its encoding is {row[0] if row else 'unknown'}",
                    hint="Create a database with `createdb --encoding UTF8 --template template0 NAME`.",
                )
            connection.execute(_SESSION, prepare=False)
            connection.execute(f"SET search_path = {self.schema}".encode(), prepare=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def lock_key(self, *words: str) -> int:
        """The key of an advisory lock, which belongs to the database."""
        text = "\0".join(("llm-do", self.schema, *words))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


def target_of(url: str) -> Target:
    """Take a URL such as `postgresql://user:password@host/database?schema=name` apart.

    Raises:
        StoreError: psycopg isn't installed.
        UsageError: It isn't a valid URL.
    """
    from urllib.parse import parse_qsl, quote, urlencode

    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        missing = missing_extra("postgres", "a store in PostgreSQL")
        message = missing.message
        if has_extra("postgres"):  # the driver is there, but not the library that it needs
            message = f"threads can't be kept in PostgreSQL: {error}"
        raise StoreError(message, hint=missing.hint) from None
    hint = "Write it as `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with other characters as `%XX`."
    try:
        base, _, query = url.partition("?")
        options = parse_qsl(query, keep_blank_values=True)
        schema = dict(options).get("schema", SCHEMA)
        others = urlencode([each for each in options if each[0] != "schema"], quote_via=quote)
        parameters = conninfo_to_dict(f"{base}?{others}" if others else base)
    except (ProgrammingError, ValueError):  # their texts may contain the password
        raise UsageError("the URL of the store isn't valid", hint=hint) from None
    if not _SCHEMA.fullmatch(schema):
        raise UsageError(f"{schema!r} can't be the schema of a store", hint="Use lower-case letters, digits and `_`.")
    return Target(_name(parameters, schema), parameters, schema)


def _name(parameters: Mapping[str, Any], schema: str) -> str:
    """The URL without password and options; the server's defaults aren't filled in."""
    user = f"{parameters['user']}@" if parameters.get("user") else ""
    port = f":{parameters['port']}" if parameters.get("port") else ""
    host = str(parameters.get("host") or "")
    name = f"postgresql://{user}{host}{port}/{parameters.get('dbname') or ''}"
    return name if schema == SCHEMA else f"{name}?schema={schema}"
