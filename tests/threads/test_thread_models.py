"""The model set on a thread overrides the agent's, and errors name the setting's origin."""

from __future__ import annotations

from typing import Any

import pytest

from llm_do import ModelUnavailableError
from llm_do.diagnostics.diagnostic import Location
from llm_do.threads import SqliteStore, StateManager
from tests.support.runs import agent, carry_out, runtime_of
from tests.threads.thread_support import done

SETTING = "the model that the thread 't' is set to isn't available: "


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def on(store: SqliteStore, setting: Any, *, own: Any = "test", thread: str | None = "t", **options: Any) -> Any:
    """Run on a thread with this model set, and return the result."""
    done(StateManager(store).set_thread_config("t", {"model": setting}))
    spec = agent("main", own, place=Location("main.agent", 3))
    return carry_out(runtime_of([spec], options={"store": store, **options}), thread_id=thread)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("nope:x", "names an unknown provider"),
        ("bogus", "names no provider"),
        ("openai:gpt-5", "OPENAI_API_KEY must be set"),
        (["openai:a", "openai:b"], "none of the models openai:a, openai:b can be used"),
        ("local:/no/such/weights.gguf", "there is no file"),
    ],
    ids=["provider", "word", "key", "list", "file"],
)
def test_an_unavailable_model_set_on_a_thread_is_reported_as_the_threads(
    store: SqliteStore, model: Any, says: str
) -> None:
    error = on(store, model).error

    assert isinstance(error, ModelUnavailableError)
    assert error.message.startswith(SETTING)
    assert says in error.message
    assert error.hint is not None
    assert "llm-do threads set THREAD model=" in error.hint
    assert (error.file, error.agent_path) == (None, "main")


def test_an_unavailable_model_of_the_agent_is_reported_as_the_agents(store: SqliteStore) -> None:
    error = on(store, None, own="openai:gpt-5").error

    assert isinstance(error, ModelUnavailableError)
    assert "thread" not in error.message
    assert error.file == "main.agent"


def test_an_unavailable_model_of_the_caller_is_not_reported_as_the_threads(store: SqliteStore) -> None:
    error = on(store, "test", model="openai:gpt-5").error

    assert isinstance(error, ModelUnavailableError)
    assert "thread" not in error.message


def test_an_empty_setting_counts_as_unset(store: SqliteStore) -> None:
    assert on(store, "").output == "success (no tool calls)"
