"""Patterns: their syntax, their errors and what they match."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from llm_do.policy.matcher import covers, is_unresolved, matches, prepare_call
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern
from llm_do.policy.proposals import narrowest_rule, proposed_rules
from llm_do.policy.values import ToolCallInfo
from tests.support.tables import each_row


def on_path(path: str | None, tool: str = "write_file", **more: object) -> ToolCallInfo:
    return ToolCallInfo(tool, {"path": str(path), **more}, primary="path", resolved={"path": path})


def allows(pattern: str, call: ToolCallInfo) -> bool:
    return matches(parse_pattern(pattern), call)


def denies(pattern: str, call: ToolCallInfo) -> bool:
    return matches(parse_pattern(pattern), call, restrictive=True)


@each_row(
    "text, column, says",
    [
        ("", 1, "no tool"),
        ("(x)", 1, "no tool"),
        (":tool", 1, "no agent"),
        ("a:b:c", 3, "second colon"),
        ("a b", 2, "blank"),
        ("tool()", 6, "empty"),
        ("tool( )", 6, "empty"),
        ("tool(x", 7, "not closed"),
        ("tool(x)y", 8, "follows"),
        ("tool(a(b))", 7, "parenthesis inside"),
        ("tool)", 5, "stray"),
        ("tool(a=x, y)", 10, "name="),
        ("tool(a=x, a=y)", 10, "twice"),
        ("tool('x)", 6, "quote is not closed"),
        ("tool(x\\", 7, "backslash"),
        ("tool([a)", 6, "bracket"),
        ("tool([z-a])", 7, "z-a is empty"),
    ],
)
def test_an_invalid_pattern_reports_the_column_and_the_fix(text: str, column: int, says: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    assert caught.value.column == column
    assert says in caught.value.message
    assert caught.value.hint
    assert caught.value.text == text


def read(text: str) -> Pattern | PatternError:
    try:
        return parse_pattern(text)
    except PatternError as error:
        return error


@given(st.text(alphabet="ab:*?[]!^-()=,'\"\\ |/.\n", max_size=25) | st.text(max_size=25))
def test_any_text_is_a_pattern_or_a_pattern_error(text: str) -> None:
    pattern = read(text)
    if isinstance(pattern, PatternError):
        assert 1 <= pattern.column <= len(text) + 1
        return
    pipeline = (("git", "log"), ("head",))
    for call in (
        on_path("a/b"),
        ToolCallInfo("a", {"a": "b"}),
        ToolCallInfo("a", {"a": ["b", 1]}, primary="a"),
        ToolCallInfo("shell", {"command": "git log"}, primary="command", resolved={"command": pipeline}),
    ):
        assert matches(pattern, call) in (True, False)
        assert matches(pattern, call, restrictive=True) in (True, False)


@each_row(
    "pattern, path",
    [
        ("write_file", "x"),
        ("*", "x"),
        ("write_*", "x"),
        ("write_file(reports/**)", "reports/a/b.md"),
        ("write_file(./reports//**)", "reports/a"),
        ("write_file(reports/)", "reports/a/b"),
        ("write_file(reports/*.md)", "reports/a.md"),
        ("write_file(**/*.md)", "a.md"),
        ("write_file(**/*.md)", "x/y/a.md"),
        ("write_file(a/**/z)", "a/z"),
        ("write_file(a/**/z)", "a/b/z/c/z"),
        ("write_file(**)", "a/b"),
        ("write_file(**)", "."),
        ("write_file(.)", "."),
        ("write_file([a-c]?.md)", "bx.md"),
        ("write_file([!a-c].md)", "d.md"),
        ("write_file([]x].md)", "].md"),
        ("write_file('a, (b) *.md')", "a, (b) *.md"),
        ('write_file("a\\"b")', 'a"b'),
        ("write_file(a\\*b)", "a*b"),
        ("write_file(my notes.md)", "my notes.md"),
        ("write_file(a,b)", "a,b"),
        ("write_file(path=reports/**, content=*ok*)", "reports/x"),
    ],
)
def test_a_path_pattern_allows(pattern: str, path: str) -> None:
    assert allows(pattern, on_path(path, content="this is ok\nreally"))


@each_row(
    "pattern, path",
    [
        ("write_file(reports/*)", "reports/a/b"),
        ("write_file(reports/**)", "reports"),
        ("write_file(reports/**)", "reports2/a"),
        ("write_file(reports/**)", "x/reports/a"),
        ("write_file(reports/**)", "Reports/a"),
        ("write_file(reports/**)", "reports/../secret"),
        ("write_file(reports/**)", None),
        ("write_file(**)", None),
        ("write_file", None),
        ("*", None),
        ("write_file(**)", "a\0b"),
        ("write_file(**)", "../a"),
        ("write_file(a\\*b)", "axb"),
        ("write_file('**')", "a/b"),
        ("write_file(.)", "a"),
        ("write_file(**/*.md)", "a.mdx"),
        ("write_file(path=reports/**, content=no)", "reports/x"),
        ("write_file(path=reports/**, mode=x)", "reports/x"),
        ("read_file(**)", "x"),
        ("Write_file", "x"),
    ],
)
def test_a_path_pattern_does_not_allow(pattern: str, path: str | None) -> None:
    assert not allows(pattern, on_path(path, content="ok"))


@each_row(
    "pattern, path",
    [
        ("write_file(secrets)", "secrets/deep/key"),
        ("write_file(secrets/**)", "secrets"),
        ("write_file(secrets/**)", "SECRETS/key"),
        ("write_file(*)", "a/b"),
        ("write_file(secrets/**)", None),
        ("write_file(path=x, content=*key*)", "other"),
        ("write_file(M\u00fcller/**)", "Mu\u0308ller/key"),
        ("write_file(Mu\u0308ller/*.md)", "m\u00dcller/a.md"),
        ("write_file(secret.txt)", "\u017fecret.txt"),
        ("write_file(Stra\u00dfe/*)", "STRASSE/a"),
        ("write_file(strasse/*)", "Stra\u00dfe/a"),
        ("write_file(caf?)", "cafe\u0301"),
        ("write_file(caf??)", "cafe\u0301"),
    ],
)
def test_a_deny_rule_matches_paths_broadly(pattern: str, path: str | None) -> None:
    assert denies(pattern, on_path(path, content="the key"))


def test_a_deny_rule_does_not_match_other_paths() -> None:
    assert not denies("write_file(secrets/**)", on_path("notes/secrets"))
    assert not denies("write_file(.)", on_path("notes"))


def test_spaces_around_the_equals_sign_are_ignored() -> None:
    call = ToolCallInfo("send", {"to": "ann", "kind": "mail"}, primary="to")
    assert parse_pattern("send( to = a* , kind =mail)").named == parse_pattern("send(to=a*, kind=mail)").named
    assert allows("send(to = a*)", call)
    assert denies("send(kind = mail)", call)


def test_a_linked_path_is_allowed_by_its_target_and_denied_by_every_name() -> None:
    call = ToolCallInfo("write_file", {}, primary="path", resolved={"path": ("now/a", "way/a", "releases/1/a")})
    assert allows("write_file(releases/**)", call)
    assert not allows("write_file(now/**)", call)
    for rule in ("write_file(now/**)", "write_file(way)", "write_file(path=releases/*/a)"):
        assert denies(rule, call)
    assert not denies("write_file(a)", call)
    assert not is_unresolved(call)
    assert is_unresolved(ToolCallInfo("write_file", {}, primary="path", resolved={"path": ()}))
    assert narrowest_rule(call) == "write_file(releases/1/a)"
    assert proposed_rules(call)[1] == "main:write_file(releases/1/**)"


def test_both_ends_of_a_move_must_be_allowed_and_either_can_be_denied() -> None:
    def move(source: str, target: str) -> ToolCallInfo:
        ends = {"source": source, "target": target}
        return ToolCallInfo("move_file", ends, primary=("source", "target"), resolved=ends)

    assert allows("move_file(reports/**)", move("reports/a", "reports/b"))
    assert not allows("move_file(reports/**)", move("reports/a", "src/b"))
    assert denies("move_file(src/**)", move("reports/a", "src/b"))


def test_a_pattern_for_the_primary_argument_never_allows_a_tool_without_one() -> None:
    call = ToolCallInfo("send", {"to": "ann"})
    assert not allows("send(*)", call)
    assert not allows("send(*)", ToolCallInfo("send", {"to": "ann"}, primary=()))
    assert denies("send(ann)", call)
    assert not denies("send(bob)", call)


def test_values_other_than_strings_are_compared_as_json() -> None:
    call = ToolCallInfo("send", {"to": ["ann", "bob"], "urgent": True, "n": 3, "odd": object()})
    assert allows("send(urgent=true, n=3)", call)
    assert allows('send(to=\'["ann","bob"]\')', call)
    assert not allows("send(to=ann)", call)
    assert denies("send(to=ann)", call)
    assert denies("send(to=bob)", ToolCallInfo("send", {"to": [{"mail": [{"of": "Bob"}]}]}))
    assert not denies("send(to=bob)", ToolCallInfo("send", {"to": [{"mail": [{"bob": "ann"}]}]}))
    assert not allows("send(odd=*)", call)
    assert denies("send(odd=x)", call)


def test_a_wildcard_after_a_folder_does_not_match_paths_outside_it_in_plain_text_either() -> None:
    assert allows("save(out/*)", ToolCallInfo("save", {"to": "out/a/b"}, primary="to"))
    assert not allows("save(out/*)", ToolCallInfo("save", {"to": "out/../x"}, primary="to"))


@each_row(
    "pattern, agent, path, expected",
    [
        ("writer:send", "writer", "main/writer", True),
        ("w*:send", "writer", "main/writer", True),
        ("writer:send", "main", "main", False),
        ("main/writer:send", "writer", "main/writer", True),
        ("main/writer:send", "writer", "main/other/writer", False),
        ("main/**:send", "writer", "main/other/writer", True),
        ("main/*:send", "writer", "main/other/writer", False),
        ("'my writer':send", "my writer", "main/my writer", True),
    ],
)
def test_a_pattern_may_name_the_agent_or_its_call_path(pattern: str, agent: str, path: str, expected: bool) -> None:
    assert allows(pattern, ToolCallInfo("send", {}, agent=agent, path=path)) is expected


def test_a_prefixed_tool_is_denied_by_either_name_and_allowed_only_by_its_prefixed_name() -> None:
    call = ToolCallInfo("docs_read_file", {}, tool="read_file")
    assert denies("read_file", call)
    assert denies("docs_read_file", call)
    assert allows("docs_read_file", call)
    assert not allows("read_file", call)
    assert parse_pattern("docs_*").names_tool("docs_read_file")


def test_an_unparsed_command_is_allowed_by_no_pattern_and_denied_by_any() -> None:
    call = ToolCallInfo("shell", {"command": "git log"}, primary="command", resolved={"command": None})
    assert is_unresolved(call)
    assert not any(allows(pattern, call) for pattern in ("*", "shell", "shell(*)", "shell(git log)", "shell(**)"))
    assert denies("shell(rm *)", call)
    assert denies("shell(command=rm *)", call)


def test_patterns_may_allow_a_pipeline_together() -> None:
    pipeline = (("git", "log"), ("head", "-3", "notes.txt"))
    call = ToolCallInfo("shell", {"command": "..."}, primary="command", resolved={"command": pipeline})
    assert prepare_call(call).stages == 2
    assert covers(parse_pattern("shell(git log *)"), call) == {0}
    assert covers(parse_pattern("shell(head *)"), call) == {1}
    assert covers(parse_pattern("shell(git log * | head *)"), call) == {0, 1}
    assert covers(parse_pattern("shell(head * | git log *)"), call) == frozenset()
    assert not allows("shell(git log *)", call)


def test_a_pattern_with_many_stars_does_not_take_exponential_time() -> None:
    pattern = parse_pattern("send(text=" + "*a" * 30 + "*b)")
    assert not matches(pattern, ToolCallInfo("send", {"text": "a" * 3000}))
    deep = parse_pattern("write_file(" + "**/a/" * 12 + "b)")
    assert not matches(deep, on_path("/".join("a" * 200)))


@given(st.lists(st.sampled_from(["a", "*", "?", "[ab]", "[!a]"]), max_size=6), st.text(alphabet="abc", max_size=8))
def test_globs_agree_with_a_naive_matcher(parts: list[str], text: str) -> None:
    def naive(rest: list[str], left: str) -> bool:
        if not rest:
            return not left
        if rest[0] == "*":
            return any(naive(rest[1:], left[skip:]) for skip in range(len(left) + 1))
        fits = {"a": "a", "?": "abc", "[ab]": "ab", "[!a]": "bc"}[rest[0]]
        return bool(left) and left[0] in fits and naive(rest[1:], left[1:])

    pattern = "send(text=" + "".join(parts) + ")"
    assert matches(parse_pattern(pattern), ToolCallInfo("send", {"text": text})) is naive(parts, text)


@given(
    st.lists(st.sampled_from(["a", "*", "**", "b*"]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["a", "b", "bb"]), min_size=1, max_size=6),
)
def test_path_globs_agree_with_a_naive_matcher(segments: list[str], path: list[str]) -> None:
    def naive(rest: list[str], left: list[str]) -> bool:
        if not rest:
            return not left
        if rest[0] == "**":
            least = 1 if rest == ["**"] else 0
            return any(naive(rest[1:], left[skip:]) for skip in range(least, len(left) + 1))
        fits = {"a": ["a"], "*": ["a", "b", "bb"], "b*": ["b", "bb"]}[rest[0]]
        return bool(left) and left[0] in fits and naive(rest[1:], left[1:])

    assert allows(f"write_file({'/'.join(segments)})", on_path("/".join(path))) is naive(segments, path)
