"""PostgreSQL's errors as errors of the store: what is wrong, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llm_do.errors import LlmDoError, StoreError, UsageError
from llm_do.threads.sql.store_errors import ReadOnlyStoreError

__all__ = ["PATIENCE", "driver_error", "is_lost", "is_transient", "translate_postgres_errors"]

PATIENCE = 30.0
"""Seconds that a transaction waits for another process to finish its own."""

_LOST = ("08", "57P", "25P03")
"""Codes of a connection that the server has closed, or is about to close."""

_TRANSIENT = ("40001", "40P01")
"""Codes of a transaction that the server asks to begin again."""

_HINTS = {
    "28": "Correct the user or the password in the URL of the store.",
    "3D000": "Create the database, for instance with `createdb`, or correct its name in the URL of the store.",
    "42501": (
        "Let a user with more rights run `CREATE SCHEMA llm_do AUTHORIZATION USER` in this database, or"
        " `GRANT CREATE ON DATABASE ... TO USER`."
    ),
    "42P": "The schema contains tables that aren't llm-do's, or not all of them: use another one, `?schema=NAME`.",
    "53100": "Free some space; everything saved before is still there.",
    "53300": "Raise the server's `max_connections`; each process needs two connections.",
    "53": "Look at the server's log; it lacks something.",
    "57P03": "Try again in a moment: the server is starting or stopping.",
    "XX": "Look at the server's log: the database may be damaged.",
}
"""What to do, by the beginning of an error's code; the longest that fits counts."""

_NO_CODE = (
    ("password authentication failed", "28"),
    ("no password supplied", "28"),
    ("no pg_hba.conf entry", "28"),
    ("role ", "28"),
    ("database ", "3D000"),
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
    ("starting up", "57P03"),
    ("shutting down", "57P03"),
)
"""Errors of connecting, which come without their codes."""


def driver_error(error: BaseException) -> BaseException:
    """Return psycopg's error that caused another one, or that one itself if there is none."""
    from psycopg import Error

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Error):
        cause = cause.__cause__
    return error if cause is None else cause


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the connection is gone."""
    from psycopg import Error, InterfaceError, OperationalError

    code = error.sqlstate if isinstance(error, Error) else None
    return code.startswith(_LOST) if code else isinstance(error, InterfaceError | OperationalError)


def is_transient(error: BaseException) -> bool:
    """Whether an error says that the transaction may succeed if it is begun again."""
    return getattr(error, "sqlstate", None) in _TRANSIENT


@contextmanager
def translate_postgres_errors(name: str) -> Generator[None]:
    """Raise psycopg's errors as `StoreError`s that explain them in one sentence."""
    from psycopg import Error

    try:
        yield
    except LlmDoError:
        raise
    except UnicodeEncodeError as error:
        text = f"{error.object[:60]!r} can't be stored: it contains a lone surrogate"
        raise UsageError(text, hint="Use only valid Unicode text.") from error
    except Error as error:
        raise _translate(error, name) from error


def _translate(error: BaseException, name: str) -> LlmDoError:
    from psycopg import DataError, OperationalError

    text, code = _text(error), getattr(error, "sqlstate", None)
    if code is None:
        code = next((each for words, each in _NO_CODE if words in text), None)
    if isinstance(error, DataError):
        return UsageError(f"a value can't be stored in {name}: {text}", hint="Leave out its NUL characters.")
    if code == "25006":
        return ReadOnlyStoreError(f"{name} can't be written: {text}", hint="Use the primary server, not a standby.")
    if code == "55P03":
        waited = f"{name} has been locked by another process for more than {PATIENCE:g} s"
        return StoreError(waited, hint="Try again.")
    if code is not None:
        keys = sorted((each for each in _HINTS if code.startswith(each)), key=len)
        if keys:
            return StoreError(f"{name} can't be used: {text}", hint=_HINTS[keys[-1]])
    if isinstance(error, OperationalError):
        hint = "Is the server running, and does the URL of the store name its host and port?"
        return StoreError(f"{name} can't be reached: {text}", hint=hint)
    return StoreError(f"{name} can't be used: {text}", hint="Look at the server's log; if it is a fault, report it.")


def _text(error: BaseException) -> str:
    """The first sentence of an error, without the values that the server adds."""
    diagnosis = getattr(error, "diag", None)
    text = (diagnosis.message_primary if diagnosis is not None else None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    last = next((line for line in lines if "FATAL:" in line), lines[0])
    return last.rpartition("FATAL:")[2].strip() if "FATAL:" in last else last.removeprefix("connection failed: ")
