"""`llm-do.lock`: what is written is read back, whatever is wrong has its place, and nothing depends on the machine."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from llm_do.formats.lock import LockedServer, call_entry, rule_entry
from llm_do.formats.lock_file import approval_entries, parse_lock, server_entries, server_entry, write_lock
from llm_do.formats.server_changes import change_lines, new_arguments, server_changes, tool_changes, tool_digest
from llm_do.formats.server_listings import ListedTool
from llm_do.policy.digest import call_digest
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo

TODAY = datetime.date(2026, 6, 30)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "n": {"type": "integer", "default": 1}},
    "required": ["to", "n"],
}
SEND = ListedTool("send", "Send a text.", SCHEMA, {"readOnlyHint": False})
CALL = ToolCallInfo("send", {"to": "Änn"}, path="main/helper", toolset="kb", resolved={"to": ("a", "b")})
KB = LockedServer({"command": ["kb", "--stdio"]}, {"send": SEND})

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.dictionaries(st.sampled_from(["type", "properties", "required", "$defs", "enum", "items"]), JSON)
TOOLS = st.builds(ListedTool, st.just("tool"), st.text(max_size=5), SCHEMAS, st.dictionaries(st.text(max_size=4), JSON))


def shuffled(value: Any) -> Any:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def codes(data: object) -> list[tuple[str, int]]:
    text = data if isinstance(data, str) else json.dumps(data, indent=1)
    return [(item.code, item.line) for item in parse_lock(text, TODAY).diagnostics]


def test_a_written_lock_is_read_back_and_written_alike() -> None:
    entries = [call_entry(CALL, why="w", by="ann", on="2026-01-02"), rule_entry(parse_pattern("send(to=a)"), "main")]
    text = write_lock({"kb": server_entry(KB)}, [entry for entry in entries if entry is not None])
    parsed = parse_lock(text, TODAY)
    assert parsed.value is not None
    assert not parsed.diagnostics
    assert parsed.value.servers["kb"].tools == {"send": SEND}
    assert parsed.value.servers["kb"].is_at({"command": ["kb", "--stdio"], "url": None, "timeout": 3})
    assert [*parsed.value.digests(TODAY)] == [call_digest(CALL)]
    assert [rule.text for rule in parsed.value.rules(TODAY)] == ["main:send(to=a)"]
    assert write_lock(server_entries(parsed.node), approval_entries(parsed.node)) == text


def test_an_edited_tool_stays_edited_when_an_approval_is_added() -> None:
    text = write_lock({"kb": server_entry(KB)}, []).replace("Send a text.", "Send all.")
    again = write_lock(server_entries(parse_lock(text, TODAY).node), [{"rule": "send"}])
    assert [item.code for item in parse_lock(again, TODAY).diagnostics] == ["LD652"]


def test_the_order_of_entries_and_repetitions_change_nothing() -> None:
    one, two = {"rule": "a", "agent": "x"}, {"rule": "b", "agent": "x"}
    assert write_lock({}, [one, two]) == write_lock({}, [two, one, dict(two)])


def test_every_fault_has_its_line() -> None:
    edited = {"version": 1, "servers": {"kb": {"url": "u", "tools": {"send": {"digest": "0", "input": {}}}}}}
    call = call_entry(CALL) or {}
    for data, expected in (
        ('{\n<<<<<<< HEAD\n"version": 1\n=======\n>>>>>>> b\n}', [("LD650", 2)]),
        ({"version": 2, "approvals": 3}, [("LD651", 2)]),
        ({"servers": {}}, [("LD121", 1)]),
        (edited, [("LD652", 7)]),
        ({"version": 1, "approvals": [{**call, "args": {"to": "Bob"}}]}, [("LD652", 17)]),
        ({"version": 1, "approvals": [{"rule": "send", "until": "2026-06-29"}]}, [("LD653", 6)]),
        ({"version": 1, "approvals": [{"rule": "send", "until": "2026-06-30"}]}, []),
        ({"version": 1, "approvals": [{"rule": "send", "until": "２０２０-01-01"}]}, [("LD655", 6)]),
        ({"version": 1, "approvals": [{"rule": "send", "until": "9999-99-99"}]}, [("LD655", 6)]),
        ({"version": 1, "approvals": [{"rule": "send", "until": "20990101"}]}, [("LD655", 6)]),
        ({"version": 1, "approvals": [{"rule": "send", "on": "2026-02-31"}]}, [("LD655", 6)]),
        ({"version": 1, "approvals": [{"rule": "send(to"}]}, [("LD655", 5)]),
        ({"version": 1, "approvals": [{"rule": "main:send", "agent": "main"}]}, [("LD655", 5)]),
        ({"version": 1, "approvals": [{"rule": "send", "digest": "0"}]}, [("LD655", 4)]),
        ({"version": 1, "approvals": [{"tool": "send", "digest": "0"}]}, [("LD655", 4)]),
    ):
        found = codes(data)
        assert found == expected, (data, found)


@pytest.mark.parametrize("until", ["２０２０-01-01", "٢٠٢٠-01-01", "9999-99-99", "", "2020"])
def test_an_approval_until_an_invalid_day_allows_nothing(until: str) -> None:
    parsed = parse_lock(json.dumps({"version": 1, "approvals": [{"rule": "send", "until": until}]}), TODAY)

    assert parsed.value is not None
    assert parsed.value.rules(TODAY) == ()


def test_an_expired_or_edited_approval_allows_nothing() -> None:
    call = call_entry(CALL) or {}
    for entry in ({**call, "until": "2026-06-29"}, {**call, "agent": "main"}, {**call, "toolset": "other"}):
        lock = parse_lock(json.dumps({"version": 1, "approvals": [entry]}), TODAY).value
        assert lock is None or not lock.digests(TODAY)


@given(TOOLS)
def test_a_digest_is_the_same_in_any_order_of_keys(tool: ListedTool) -> None:
    other = ListedTool(tool.name, tool.description, shuffled(tool.schema), shuffled(tool.annotations))
    assert tool_digest(other) == tool_digest(tool)
    assert tool_changes(tool, other) == ()


@given(TOOLS, TOOLS)
def test_tools_with_one_digest_are_those_without_changes(one: ListedTool, two: ListedTool) -> None:
    assert (tool_digest(one) == tool_digest(two)) == (not tool_changes(one, two))


def test_what_is_empty_says_nothing() -> None:
    empty = ListedTool("tool", "", {"properties": {}, "required": [], "$defs": {}}, {})
    assert tool_digest(empty) == tool_digest(ListedTool("tool", "", {}, {}))
    assert tool_digest(empty) != tool_digest(ListedTool("tool", "", {"properties": {"required": []}}, {}))


def test_changes_are_named_by_field() -> None:
    wider = {**SCHEMA, "properties": {**SCHEMA["properties"], "bcc": {"type": "string"}}, "additionalProperties": True}
    after = ListedTool("send", "Send.\nTo all.", wider, {"readOnlyHint": True})
    assert change_lines(tool_changes(SEND, after)) == [
        "description",
        "-  Send a text.",
        "+  Send.",
        "+  To all.",
        "annotation readOnlyHint",
        "-  false",
        "+  true",
        "argument bcc",
        '+  {"type":"string"}',
        "input additionalProperties",
        "+  true",
    ]
    assert new_arguments(SEND, after) == ("bcc",)


def test_a_renamed_tool_is_not_taken_for_a_new_one() -> None:
    moved = ListedTool("post", SEND.description, SEND.schema, SEND.annotations)
    changes = server_changes({"send": SEND, "old": SEND}, {"post": moved, "more": ListedTool("more", None, {})})
    assert (changes.new, changes.gone, changes.renamed, changes.changed) == (("more",), ("send",), {"post": "old"}, {})
    assert not server_changes({"send": SEND}, {"send": SEND})
