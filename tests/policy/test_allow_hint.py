"""Hints: the rule that allows one call is readable, allows that call and no other."""

from __future__ import annotations

from hypothesis import given, strategies as st

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.proposals import narrowest_rule, quote_argument
from llm_do.policy.values import Resolved, ToolCallInfo
from llm_do.text.sanitizer import sanitize

ODD = st.text(alphabet="ab*?[]!()=,:'\"\\ |/.-~\n\t", max_size=8) | st.text(max_size=8)
NAMES = st.from_regex(r"\A[a-z_][a-z0-9_]{0,5}\Z")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ODD, lambda inner: st.lists(inner, max_size=3), max_leaves=4
)


def primary(value: object, resolved: Resolved | None = None, tool: str = "tool") -> ToolCallInfo:
    return ToolCallInfo(tool, {"it": value}, primary="it", resolved={} if resolved is None else {"it": resolved})


def shown(*texts: str) -> bool:
    """Whether texts look the same where a person copies them."""
    return all(sanitize(text) == text for text in texts)


def hint(call: ToolCallInfo) -> str:
    text = narrowest_rule(call, limit=None)
    assert text is not None
    return text


def test_a_hint_looks_like_a_handwritten_rule() -> None:
    assert hint(primary("x", "notes/todo.md", "write_file")) == "write_file(notes/todo.md)"
    assert hint(primary("x", "./my notes//a.md", "write_file")) == "write_file('my notes/a.md')"
    assert hint(primary("x", (("git", "log", "--format=%h x"), ("head",)), "shell")) == (
        "shell(git log '--format=%h x' | head)"
    )
    assert hint(primary("x", (("git", "log", "--output=x"),), "shell")) == "shell(git log --output=x)"
    assert hint(ToolCallInfo("send", {"to": "ann", "n": 3})) == "send(to=ann, n=3)"
    assert hint(ToolCallInfo("now", {})) == "now"
    assert hint(ToolCallInfo("move", {"a": "x", "b": "y"}, primary=("a", "b"))) == "move(a=x, b=y)"
    assert hint(primary("to=ann")) == "tool('to=ann')"


def test_no_rule_is_proposed_for_calls_that_no_rule_can_allow() -> None:
    unparsed = ToolCallInfo("shell", {"command": "a;b"}, primary="command", resolved={"command": None})
    assert narrowest_rule(unparsed) is None
    assert narrowest_rule(ToolCallInfo("read", {"path": "../x"}, primary="path", resolved={"path": None})) is None


def test_a_long_hint_omits_the_longest_arguments() -> None:
    call = ToolCallInfo("send", {"to": "ann", "text": "x" * 1000})
    assert narrowest_rule(call) == "send(to=ann)"
    assert narrowest_rule(call, limit=8) == "send"
    assert narrowest_rule(primary("x" * 1000)) == "tool"


@given(ODD, ODD)
def test_a_hint_for_a_text_allows_that_text_and_no_other(value: str, other: str) -> None:
    pattern = parse_pattern(hint(primary(value)))
    assert matches(pattern, primary(value))
    if shown(value):
        assert matches(pattern, primary(other)) is (value == other)
    else:
        assert not matches(pattern, primary(other)) or len(other) == len(value)


@given(
    st.lists(
        st.text(max_size=4).filter(lambda part: not set(part) & set("/\0") and part not in ("", ".", "..")), max_size=4
    )
)
def test_a_hint_for_a_path_allows_only_that_path(parts: list[str]) -> None:
    path = "/".join(parts) or "."
    pattern = parse_pattern(hint(primary("", path)))
    assert matches(pattern, primary("", path))
    assert not matches(pattern, primary("", f"{path}/more"))
    assert not matches(pattern, primary("", f"more/{path}/x"))


@given(st.lists(st.lists(ODD, min_size=1, max_size=4), min_size=1, max_size=3), ODD)
def test_a_hint_for_a_command_allows_no_longer_command(commands: list[list[str]], more: str) -> None:
    pipeline = tuple(map(tuple, commands))
    if not shown(*(word for argv in commands for word in argv)):
        return
    pattern = parse_pattern(hint(primary("", pipeline)))
    assert matches(pattern, primary("", pipeline))
    if pipeline != ((more,),):
        assert not matches(pattern, primary("", (*pipeline, (more,))))
    assert not matches(pattern, primary("", ((*pipeline[0], more), *pipeline[1:])))


@given(st.dictionaries(NAMES, JSON, max_size=4), NAMES)
def test_a_hint_without_a_primary_argument_matches_every_argument(args: dict[str, object], tool: str) -> None:
    call = ToolCallInfo(tool, args)
    if tool == "shell" and "command" in args:
        return
    pattern = parse_pattern(hint(call))
    assert matches(pattern, call)
    for name in args:
        assert not matches(pattern, ToolCallInfo(tool, {**args, name: "another value"}))


@given(st.text(min_size=1, max_size=8))
def test_a_hint_can_name_any_tool(tool: str) -> None:
    if not shown(tool):
        return
    pattern = parse_pattern(hint(ToolCallInfo(tool, {})))
    assert matches(pattern, ToolCallInfo(tool, {}))
    assert not matches(pattern, ToolCallInfo(tool + "x", {}))


@given(st.text())
def test_a_quoted_text_is_one_pattern_on_one_line(text: str) -> None:
    assert parse_pattern(f"tool(it={quote_argument(text)}, other=x)").named[0][1].plain.literal == text
