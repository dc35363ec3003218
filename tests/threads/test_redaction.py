"""Secrets are redacted before anything is stored."""

from __future__ import annotations

import asyncio
import json
import os
from collections import UserDict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from llm_do import tool
from llm_do.runtime.record import redaction
from llm_do.runtime.record.redaction import Redactor, protect_values, redactor
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.threads.thread_support import on_thread, state_file, stored_messages

SECRET = 'sk-live-"quoted"-swordfish'


@each_row(
    "line",
    [
        "Authorization: Bearer abc.def-123",
        "authorization: Basic dXNlcjpwYXNz",
        'curl -H "Authorization: Bearer abc.def-123" https://example.org',
        "{'Authorization': 'Bearer abc.def-123'}",
        "Proxy-Authorization: abcdefgh",
        "x-api-key: abc.def-123",
    ],
)
def test_authorization_headers_are_redacted_in_lines_and_in_json_at_any_depth(line: str) -> None:
    hide = Redactor({})
    text = json.dumps(
        {
            "a": [line, {"headers": {"Authorization": "Bearer abc.def-123"}}],
            "inner": json.dumps({"Authorization": "Bearer abc.def-123"}),
        }
    )

    hidden = hide(text)

    assert json.loads(hidden)["a"][1] == {"headers": {"Authorization": "[redacted]"}}
    assert not any(secret in hidden for secret in ("abc.def-123", "dXNlcjpwYXNz", "abcdefgh"))
    assert json.loads(json.loads(hidden)["inner"]) == {"Authorization": "[redacted]"}


def test_a_redactor_knows_the_variables_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "first-secret-1 second-secret-2"
    monkeypatch.setenv("FIRST_TOKEN", "first-secret-1")
    assert redactor()(text) == "[redacted FIRST_TOKEN] second-secret-2"
    assert redactor() is redactor()

    monkeypatch.setenv("FIRST_TOKEN", "second-secret-2")
    assert redactor()(text) == "first-secret-1 [redacted FIRST_TOKEN]"
    monkeypatch.delenv("FIRST_TOKEN")
    assert redactor()(text) == text
    monkeypatch.setattr(redaction, "_protected", {})
    protect_values({"KEY_OF_A_FILE": "first-secret-1"})
    assert redactor()(text) == "[redacted KEY_OF_A_FILE] second-secret-2"


def test_a_variable_removed_by_another_thread_does_not_hide_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Vanishing(UserDict[str, str]):
        """An environment whose first variable disappears when it is read."""

        def __iter__(self) -> Iterator[str]:
            for name in tuple(self.data):
                if name == "FIRST_TOKEN":
                    del self[name]
                yield name

    monkeypatch.setattr(os, "environ", Vanishing(FIRST_TOKEN="first-secret-1", SECOND_TOKEN="second-secret-2"))

    assert redactor()("second-secret-2") == "[redacted SECOND_TOKEN]"


@each_row(
    "value, text, hidden",
    [
        (
            "postgres://me:tr0ub4dor@db/main",
            "psql postgres://me:tr0ub4dor@db/main",
            "psql postgres://me:[redacted X]@db/main",
        ),
        ("postgres://me:tr0ub4dor@db/main", "PGPASSWORD=tr0ub4dor psql", "PGPASSWORD=[redacted X] psql"),
        ("postgres://me:tr%40ub4dor@db/main", "PGPASSWORD=tr@ub4dor psql", "PGPASSWORD=[redacted X] psql"),
        (
            "http://user:pw@proxy:80",
            "curl -x http://user:pw@proxy:80; user:pw",
            "curl -x http://[redacted X]proxy:80; user:pw",
        ),
        ("redis://:longsecret@cache", "longsecret", "[redacted X]"),
        ("a=http://u:secret-one@h b=http://u:secret-two@h", "secret-one secret-two", "[redacted X] [redacted X]"),
        ("ghp_0123456789abcdef", "git clone https://ghp_0123456789abcdef@h", "git clone https://[redacted X]@h"),
        ("https://example.org:8080/a@b", "https://example.org:8080/a@b", "https://example.org:8080/a@b"),
        ("an ordinary value", "an ordinary value", "an ordinary value"),
    ],
)
def test_a_secret_is_recognized_by_its_value(value: str, text: str, hidden: str) -> None:
    assert json.loads(Redactor({"X": value})(json.dumps(text))) == hidden


def test_text_that_only_mentions_authorization_is_kept() -> None:
    text = '"The authorization of this call, and API-keys in general"'
    assert Redactor({"HOME": "/home/me-and-you", "API_KEY": "short"})(text) == text


PIECES = st.sampled_from(
    ["Authorization", "authorization:", "x-api-key", "=", '"', "\\", ": ", "Bearer abcdef", "12345", "true"]
)
TEXTS = st.text(max_size=20) | st.lists(PIECES, max_size=6).map("".join)


@given(
    st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3) | st.integers() | st.booleans() | st.none(), max_size=5)
)
def test_redacted_json_stays_valid_json(data: dict[str, object]) -> None:
    hide = Redactor({"SOME_TOKEN": 'ab"cd\\efgh'})
    text = json.dumps({**data, "text": 'it is ab"cd\\efgh'}, ensure_ascii=False)

    assert json.loads(hide(text))["text"] == "it is [redacted SOME_TOKEN]"


def test_no_value_of_a_key_like_variable_reaches_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", SECRET)

    @tool(approval="allow")
    def show_environment() -> dict[str, str]:
        """Show it."""
        return {"ACME_API_KEY": SECRET}

    model = script(call("show_environment"), f"it is {SECRET}")
    on_thread(runtime_of([agent("main", model, tools=[show_environment])], root=tmp_path), f"what is {SECRET}?")

    store = state_file(tmp_path)
    assert "redacted ACME_API_KEY" in str(stored_messages(store))
    asyncio.run(store.aclose())
    data = b"".join(path.read_bytes() for path in (tmp_path / ".llm-do").iterdir() if path.is_file())
    assert b"sk-live" not in data
    assert b"swordfish" not in data
