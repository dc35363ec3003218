"""What a store in PostgreSQL refuses, and what its errors say."""

from __future__ import annotations

import os
import traceback

import pytest

from llm_do import StoreError, UsageError
from llm_do.project.store_location import expand
from llm_do.runtime.record.redaction import redactor
from llm_do.threads import PostgresStore, ThreadRecord
from llm_do.threads.sql.migrations import MIGRATIONS
from tests.support.postgres import PASSWORD, Server
from tests.threads.thread_support import done

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` isn't installed")


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.url()


def refused(url: str) -> StoreError | UsageError:
    with pytest.raises((StoreError, UsageError)) as caught:
        done(PostgresStore(url).threads())
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value) + repr(caught.value)
    assert "t0p" not in shown, "a password is shown"
    return caught.value


def test_what_is_missing_is_named(postgres: Server) -> None:
    port = postgres.port
    postgres.query("CREATE ROLE app LOGIN PASSWORD 't0p'")
    postgres.query("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    cases = {
        f"postgresql://app:t0p-s3cret@127.0.0.1:{port}/postgres": "password authentication failed",
        f"postgresql://nobody:t0p@127.0.0.1:{port}/postgres": "authentication failed",
        f"postgresql://app:t0p@127.0.0.1:{port}/nowhere": 'database "nowhere" does not exist',
        f"postgresql://app:t0p@127.0.0.1:{port}/postgres": "permission denied for database postgres",
        "postgresql://app:t0p@127.0.0.1:1/postgres": "Connection refused",
        "postgresql://app:t0p@no.such.host.invalid/postgres": "no.such.host.invalid",
        "postgresql:///postgres?host=/nowhere&password=t0p": "No such file",
        "postgresql://app:t0p@127.0.0.1:x/postgres": "port",
    }
    for url, words in cases.items():
        error = refused(url)
        assert words in error.message, error
        assert error.hint
    for url in ("postgresql://app:t0p%zz@h/d", "postgresql://app:t0p@h/d?nonsense=1"):
        assert "the URL of the store isn't valid" in refused(url).message
    assert "can't be the schema" in refused("postgresql://app:t0p@h/d?schema=A-B").message


def test_a_value_that_postgresql_cannot_hold_is_named(url: str) -> None:
    store = PostgresStore(url)
    with pytest.raises(UsageError, match="NUL"):
        done(store.save_thread(ThreadRecord("a\0b"), expected=None))
    with pytest.raises(UsageError, match="surrogate"):
        done(store.save_thread(ThreadRecord("a\udc80"), expected=None))
    assert done(store.threads()) == []
    done(store.aclose())


def test_tables_that_are_not_ours_and_those_of_a_newer_version_are_left_alone(postgres: Server) -> None:
    url = postgres.url("foreign")
    for sql in ('CREATE SCHEMA "foreign1"', "CREATE TABLE foreign1.threads (a int)"):
        postgres.query(sql)
    error = refused(postgres.url("foreign1"))
    assert 'relation "threads" already exists' in error.message
    assert "schema=NAME" in (error.hint or "")

    done(PostgresStore(url := postgres.url("newer")).threads())
    postgres.query(f"UPDATE newer.store_version SET version = {len(MIGRATIONS) + 9}")
    error = refused(url + "&connect_timeout=9")
    assert f"newer llm-do (store version {len(MIGRATIONS) + 9}" in error.message
    assert "another database" in (error.hint or "")


def test_a_password_is_redacted_wherever_it_could_be_recorded(postgres: Server) -> None:
    url = postgres.tcp_url()
    store = PostgresStore(url)
    assert PASSWORD not in repr(store) + store.name
    text = redactor()(f"{url} and {PASSWORD}")
    assert PASSWORD not in text
    assert "correct%20horse" not in text


def test_variables_of_a_url_are_filled_in_quoted_and_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "p@ss/w:rd")
    monkeypatch.setenv("DB_URL", "postgres://h/d")
    monkeypatch.setenv("NO_URL", "mysql://h")
    assert expand("postgresql://u:${DB_PASSWORD}@h/d", os.environ) == "postgresql://u:p%40ss%2Fw%3Ard@h/d"
    assert expand("${DB_URL}", os.environ) == "postgres://h/d"
    with pytest.raises(UsageError, match="NO_URL doesn't hold the URL"):
        expand("${NO_URL}", os.environ)
    with pytest.raises(UsageError, match="NOT_SET_AT_ALL, which the store's URL refers to, is not set"):
        expand("postgresql://u:${NOT_SET_AT_ALL}@h/d", os.environ)
