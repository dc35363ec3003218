"""The managers of messages, settings, states and the journal, for code outside a run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from llm_do import ThreadConflict, ToolError, UsageError
from llm_do.threads import (
    ConversationManager,
    ObservationManager,
    StateManager,
    StoredMessage,
    ThreadConfig,
    ThreadRecord,
    ThreadStore,
)
from tests.support.tables import each_row
from tests.threads.thread_support import done, model_text, prompts, talk, user_text


def test_messages_are_in_order_with_id_time_and_metadata(store: ThreadStore) -> None:
    manager = ConversationManager(store)
    ids = done(manager.add_messages("t", [user_text("one"), model_text("two")], metadata={"rating": 5}))

    stored = done(manager.get_messages("t"))

    assert [each.id for each in stored] == ids
    assert [each.message for each in stored] == [user_text("one"), model_text("two")] or [
        type(each.message).__name__ for each in stored
    ] == ["ModelRequest", "ModelResponse"]
    assert [each.parent for each in stored] == [None, ids[0]]
    assert all(each.time > 0 and each.metadata == {"rating": 5} for each in stored)


def test_a_state_that_is_not_json_is_refused_and_the_error_names_its_thread(store: ThreadStore) -> None:
    manager = StateManager(store)
    context = done(manager.load_thread_context("t"))
    context.state["seen"] = {1}

    with pytest.raises(ToolError, match="the state of thread 't' isn't JSON data"):
        done(manager.save_state_if_modified("t"))


def test_a_window_has_the_latest_messages(store: ThreadStore) -> None:
    ids = done(talk(store, 5))
    manager = ConversationManager(store)

    def window(**query: Any) -> list[int]:
        return [ids.index(each.id) for each in done(manager.get_messages("t", **query))]

    assert window(limit=3) == [7, 8, 9]
    assert window(limit=3, before=ids[5]) == [2, 3, 4]
    assert window(after=ids[6]) == [7, 8, 9]
    assert window(after=ids[2], limit=2) == [3, 4]
    assert window(after=ids[2], before=ids[6]) == [3, 4, 5]
    assert window(limit=0) == []
    assert window(before=0.0) == []
    assert window(after=0.0, limit=1) == [0]
    assert window(before="nothing") == []


def texts(stored: list[StoredMessage]) -> list[Any]:
    messages: list[ModelMessage] = [each.message for each in stored]
    return prompts(messages)


def test_no_message_of_another_thread_is_read_by_naming_it(store: ThreadStore) -> None:
    async def look() -> list[list[Any]]:
        hers = await ConversationManager(store, "ann").add_messages(
            "t", [user_text("hers"), model_text("a"), user_text("more")]
        )
        other = await ConversationManager(store, "bob").add_messages("other", [user_text("elsewhere"), model_text("a")])
        await ConversationManager(store, "bob").add_messages("t", [user_text("his"), model_text("a")])
        manager = ConversationManager(store, "bob")
        windows = [
            await manager.get_messages("t", before=hers[2]),
            await manager.get_messages("t", before=hers[2], limit=1),
            await manager.get_messages("t", before=other[1]),
            await manager.get_messages("t", after=hers[0]),
            await manager.get_messages("t", after="nothing"),
        ]
        return [texts(window) for window in windows]

    assert done(look()) == [[]] * 5


def test_a_reversed_range_of_messages_is_empty(store: ThreadStore) -> None:
    ids = done(talk(store, 3))

    assert done(ConversationManager(store).get_messages("t", after=ids[4], before=ids[1])) == []


@pytest.mark.parametrize("limit", [0, -1, -100])
def test_a_limit_below_one_returns_no_messages(store: ThreadStore, limit: int) -> None:
    ids = done(talk(store, 3))
    manager = ConversationManager(store)

    for window in ({}, {"after": ids[0]}, {"before": 1e12}):
        assert done(manager.get_messages("t", limit=limit, **window)) == []


@pytest.mark.parametrize("wrong", ["text", None, {"role": "user"}])
def test_a_value_that_is_not_a_message_is_refused_and_nothing_is_stored(store: ThreadStore, wrong: Any) -> None:
    with pytest.raises(UsageError, match="is not a conversation message"):
        done(ConversationManager(store).add_messages("t", [user_text("x"), wrong]))
    assert done(store.thread("t")) is None


def test_metadata_that_is_not_json_is_a_typed_error(store: ThreadStore) -> None:
    with pytest.raises(UsageError, match="metadata"):
        done(ConversationManager(store).add_messages("t", [user_text("x")], metadata={"a": object()}))
    assert done(store.thread("t")) is None


def test_settings_are_found_by_their_dotted_names(store: ThreadStore) -> None:
    manager = StateManager(store)
    done(manager.set_thread_config("t", {"model": "openai:gpt-5", "model_settings": {"temperature": 0.2}}))

    def value(key: str, default: object = None) -> object:
        return done(manager.get_thread_config_value("t", key, default))

    assert value("model_settings.temperature") == 0.2
    assert value("reasoning.model") == "openai:gpt-5"
    assert value("reasoning.params.temperature") == 0.2
    assert value("model_settings.top_p", 1) == 1
    assert value("model.name", "none") == "none"
    assert value("history_limit", 7) == 7
    assert done(manager.get_thread_config_value("other", "model", "d")) == "d"


def test_null_removes_a_setting_and_keeps_the_others(store: ThreadStore) -> None:
    manager = StateManager(store)
    done(manager.set_thread_config("t", {"model": "test", "history_limit": 4}))

    assert done(manager.set_thread_config("t", {"model": None})) == ThreadConfig(history_limit=4)


@each_row(
    "wrong",
    [
        {"modle": "x"},
        {"history_limit": 0},
        {"history_limit": True},
        {"enabled_tools": "all"},
        {"model_settings": {"extra_headers": {"Authorization": "Bearer x"}}},
        {"model_settings": {"openai_api_key": "sk-1"}},
        {"compaction": {"strategies": ["magic"]}},
        {"system_prompt": 3},
        {"compaction": {"max_tokens": 5, "fraction": 0.5}},
        {"model_settings": {"temperature": "hot"}},
        {"model_settings": {"max_tokens": 0}},
        {"model_settings": {"extra": object()}},
    ],
)
def test_invalid_settings_and_settings_with_secrets_are_refused(store: ThreadStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        done(StateManager(store).set_thread_config("t", wrong))
    assert done(store.thread("t")) is None


def test_state_is_saved_if_it_has_changed(store: ThreadStore) -> None:
    async def change() -> tuple[bool, bool, Any]:
        manager = StateManager(store)
        await store.save_thread(ThreadRecord("t", state={"tags": ["a"]}), expected=None)
        state = (await manager.load_thread_context("t")).state
        unchanged = await manager.save_state_if_modified("t")
        state["tags"].append("b")
        changed = await manager.save_state_if_modified("t")
        return unchanged, changed, (await store.thread("t") or pytest.fail("it is gone")).state

    assert done(change()) == (False, True, {"tags": ["a", "b"]})


def test_state_does_not_overwrite_a_turn_in_between(store: ThreadStore) -> None:
    async def change() -> None:
        manager = StateManager(store)
        await store.save_thread(ThreadRecord("t", state={"n": 1}), expected=None)
        state = (await manager.load_thread_context("t")).state
        await talk(store, 1)
        state["n"] = 2
        with pytest.raises(ThreadConflict):
            await manager.save_state_if_modified("t")

    done(change())


def test_a_manager_remembers_a_limited_number_of_states_and_loses_no_change_silently(
    store: ThreadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do.threads.managers.state_manager.LOADED", 2)

    async def change() -> tuple[list[bool], Any]:
        manager = StateManager(store)
        never = await manager.save_state_if_modified("never")
        states = {name: (await manager.load_thread_context(name)).state for name in "ab"}
        states["a"]["n"] = 1
        saved = await manager.save_state_if_modified("a")
        await manager.load_thread_context("c")
        states["a"]["n"], states["b"]["n"] = 2, 2
        with pytest.raises(UsageError, match="the state of thread 'b' is no longer known") as raised:
            await manager.save_state_if_modified("b")
        assert raised.value.hint is not None
        again = await manager.save_state_if_modified("a")
        return [never, saved, again], (await store.thread("a") or pytest.fail("it is gone")).state

    assert done(change()) == ([False, True, True], {"n": 2})


def test_showing_and_calling_a_tool_use_one_predicate(store: ThreadStore) -> None:
    manager = StateManager(store)
    assert done(manager.is_tool_enabled("new", "anything"))
    done(manager.set_thread_config("t", {"enabled_tools": ["read_*", "add"]}))

    assert done(manager.is_tool_enabled("t", "read_file"))
    assert done(manager.is_tool_enabled("t", "add"))
    assert not done(manager.is_tool_enabled("t", "delete_file"))


def test_a_subscriber_receives_exactly_what_its_filter_selects(store: ThreadStore) -> None:
    manager = ObservationManager(store)
    heard: list[tuple[str, str | None]] = []
    end = manager.subscribe(lambda item: heard.append((item.type, item.thread_id)), types=["note"], thread_id="t")

    async def record() -> None:
        await manager.record("note", {"text": "1"}, thread_id="t")
        await manager.record("note", {"text": "2"}, thread_id="u")
        await manager.record("other", {"text": "3"}, thread_id="t")
        end()
        await manager.record("note", {"text": "4"}, thread_id="t")

    done(record())

    assert heard == [("note", "t")]
    assert [each.data["text"] for each in done(manager.get(thread_id="t", types=["note"]))] == ["1", "4"]


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3)], ids=repr)
def test_a_failing_subscriber_affects_no_one_else(
    error: BaseException, store: ThreadStore, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ObservationManager(store)
    heard: list[str] = []

    def broken(_: object) -> None:
        raise error

    manager.subscribe(broken)
    manager.subscribe(lambda item: heard.append(item.type))

    done(manager.record("note", {}))

    assert heard == ["note"]
    assert "subscriber" in caplog.text


@pytest.mark.parametrize(("before", "after"), [(1, True), (False, 0), (1, 1.5), ([1, 2], [2, 1]), ("1", 1)])
def test_states_are_compared_as_json_not_as_python_values(store: ThreadStore, before: Any, after: Any) -> None:
    async def change() -> tuple[bool, Any]:
        manager = StateManager(store)
        await store.save_thread(ThreadRecord("t", state={"v": before}), expected=None)
        (await manager.load_thread_context("t")).state["v"] = after
        return await manager.save_state_if_modified("t"), (await store.thread("t") or pytest.fail("it is gone")).state

    changed, state = done(change())

    assert changed
    assert repr(state) == repr({"v": after})


def test_equivalent_json_is_not_a_change(store: ThreadStore) -> None:
    async def change() -> bool:
        manager = StateManager(store)
        await store.save_thread(ThreadRecord("t", state={"a": [1], "b": {"1": 2}}), expected=None)
        state = (await manager.load_thread_context("t")).state
        state.clear()
        state.update({"b": {1: 2}, "a": (1,)})
        return await manager.save_state_if_modified("t")

    assert not done(change())


def test_an_async_subscriber_is_refused(store: ThreadStore) -> None:
    async def hear(_: object) -> None:
        pytest.fail("it was called")

    with pytest.raises(UsageError, match="can't be async"):
        ObservationManager(store).subscribe(hear)


def test_a_single_type_needs_no_list(store: ThreadStore) -> None:
    manager = ObservationManager(store)
    heard: list[str] = []
    manager.subscribe(lambda item: heard.append(item.type), types="note")

    done(manager.record("note", {}))
    done(manager.record("n", {}))

    assert heard == ["note"]
    assert [each.type for each in done(manager.get(types="note"))] == ["note"]


def test_an_entry_with_a_lone_surrogate_is_written(store: ThreadStore) -> None:
    recorded = done(ObservationManager(store).record("note", {"text": "half \ud83d", "of": float("inf")}))

    assert (recorded.data["text"], recorded.data["of"]) == ("half \ufffd", None)
