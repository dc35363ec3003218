"""Threads as JSON lines: round trips, and faults reported with their line."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart

from llm_do import UsageError
from llm_do.threads import ConversationManager, ThreadRecord, ThreadStore
from llm_do.threads.managers.transfer import export_thread, import_lines
from tests.support.scripted import call
from tests.threads.thread_support import done, model_text, stored_messages, user_text

Lines = list[dict[str, Any]]


async def exported(store: ThreadStore) -> Lines:
    """Build the lines of a thread that uses every field."""
    calls = [ModelResponse([call("add", {"a": 1}, "c")]), ModelRequest([ToolReturnPart("add", "2", tool_call_id="c")])]
    messages = [user_text("a\u2028b"), *calls, model_text("2")]
    await ConversationManager(store).add_messages("t", messages, metadata={"rating": 5})
    record = await store.thread("t") or pytest.fail("it is gone")
    toolkits = {"desk": {"context": {"user": "ann"}, "unlocked_states": ["in"]}}
    record = await store.save_thread(replace(record, state={"n": 1}, toolkits=toolkits), expected=record.revision)
    return [json.loads(line) for line in await export_thread(store, record)]


async def imported(store: ThreadStore, lines: Lines) -> ThreadRecord:
    return await import_lines(store, [json.dumps(each) for each in lines], None, name="back", source="t.jsonl")


def test_an_exported_thread_is_imported_unchanged(store: ThreadStore) -> None:
    async def round_trip() -> tuple[ThreadRecord, ThreadRecord]:
        back = await imported(store, await exported(store))
        return await store.thread("t") or pytest.fail("it is gone"), back

    first, back = done(round_trip())

    assert stored_messages(store, "back") == stored_messages(store)
    assert (back.state, back.toolkits, back.config, back.created) == (
        first.state,
        first.toolkits,
        first.config,
        first.created,
    )
    assert [each.metadata for each in done(store.history(back.head))] == [{"rating": 5}] * 4


def test_metadata_is_redacted_as_messages_are_and_a_state_is_exact(
    store: ThreadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "tr0ub4dor-and-more"

    async def copied() -> tuple[ThreadRecord, ThreadRecord]:
        monkeypatch.delenv("ACME_API_KEY", raising=False)
        lines = await exported(store)
        for line in lines[1:]:
            line["metadata"] = {"note": f"it is {secret}"}
        lines[0]["state"] = {"note": secret}
        monkeypatch.setenv("ACME_API_KEY", secret)
        back = await imported(store, lines)
        await ConversationManager(store).add_messages("new", [user_text("hello")], metadata={"note": secret})
        return back, await store.thread("new") or pytest.fail("it is gone")

    back, new = done(copied())

    hidden = "[redacted ACME_API_KEY]"
    assert back.state == {"note": secret}
    assert [each.metadata for each in done(store.history(back.head))] == [{"note": f"it is {hidden}"}] * 4
    assert [each.metadata for each in done(store.history(new.head))] == [{"note": hidden}]


def test_a_thread_without_a_state_has_an_empty_one(store: ThreadStore) -> None:
    async def without() -> Any:
        lines = await exported(store)
        del lines[0]["state"]
        return (await imported(store, lines)).state

    assert done(without()) == {}


WRONG: dict[str, tuple[Callable[[Lines], None], int]] = {
    "no time": (lambda lines: lines[2].update(time="yesterday"), 3),
    "not a number": (lambda lines: lines[2].update(time=float("nan")), 3),
    "an endless time": (lambda lines: lines[2].update(time=float("inf")), 3),
    "yes is no time": (lambda lines: lines[2].update(time=True), 3),
    "no time of the thread": (lambda lines: lines[0].update(created=float("inf")), 1),
    "metadata": (lambda lines: lines[1].update(metadata=[1]), 2),
    "config": (lambda lines: lines[0].update(config={"modle": "x"}), 1),
    "a setting": (lambda lines: lines[0].update(config={"model_settings": {"temperature": "hot"}}), 1),
    "state": (lambda lines: lines[0].update(state={"n": float("nan")}), 1),
    "toolkits": (lambda lines: lines[0].update(toolkits=["desk"]), 1),
    "a toolkit": (lambda lines: lines[0].update(toolkits={"desk": 5}), 1),
    "a toolkit's context": (lambda lines: lines[0].update(toolkits={"desk": {"context": []}}), 1),
    "a toolkit's states": (lambda lines: lines[0].update(toolkits={"desk": {"unlocked_states": "in"}}), 1),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("what", sorted(WRONG))
def test_an_invalid_line_is_reported_and_nothing_is_stored(store: ThreadStore, what: str) -> None:
    spoil, line = WRONG[what]

    async def refused() -> UsageError:
        lines = await exported(store)
        spoil(lines)
        with pytest.raises(UsageError) as raised:
            await imported(store, lines)
        return raised.value

    error = done(refused())

    assert (error.file, error.line) == ("t.jsonl", line)
    assert "\n" not in error.message
    assert done(store.thread("back")) is None


@pytest.mark.slow
def test_extremely_nested_lines_are_refused(store: ThreadStore) -> None:
    gc.collect()  # what earlier tests have left must not be finalized where no stack is left
    with pytest.raises(UsageError, match="not JSON"):
        done(import_lines(store, ["[" * 100_000], None, name=None, source="t.jsonl"))
