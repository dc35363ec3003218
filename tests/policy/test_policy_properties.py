"""Properties that hold for any rules and any call."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from llm_do.policy.decision import decide
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.rules import Policy, Rule
from llm_do.policy.values import Decision, Effect, Pipeline, Resolved, ToolCallInfo

EFFECTS: st.SearchStrategy[Effect] = st.sampled_from(["allow", "ask", "deny"])
PATTERNS = st.sampled_from(
    [
        *("*", "shell", "write_file", "send", "wr*", "main:*", "x:*", "*(*)", "shell(*)"),
        *("shell(git log *)", "shell(git *)", "shell(rm *)", "shell(git log * | head *)", "shell(head)"),
        *("write_file(a/**)", "write_file(*)", "write_file(a/b)", "write_file(path=a/*, content=x)"),
        *("send(to=ann)", "send(to=*)", "send(ann)", "send(to=a*, n=1)"),
    ]
)
WORDS = st.sampled_from(["git", "log", "rm", "head", "env", "-C", "--output=x", "-3", "x", "/bin/rm", "../x"])


def a_rule(effect: Effect, text: str) -> Rule:
    return Rule(effect, parse_pattern(text), text)


RULES = st.builds(a_rule, EFFECTS, PATTERNS)


@st.composite
def calls(draw: st.DrawFn, *, resolvable: bool = True) -> ToolCallInfo:
    tool = draw(st.sampled_from(["shell", "write_file", "send"] if resolvable else ["shell", "write_file"]))
    agent = draw(st.sampled_from(["main", "x"]))
    if tool == "send":
        to = draw(st.sampled_from(["ann", "bob", "a\nb"]))
        return ToolCallInfo(tool, {"to": to, "n": draw(st.integers(0, 2))}, agent=agent)
    name = "command" if tool == "shell" else "path"
    value: Resolved = None
    if resolvable and tool == "shell":
        argv = st.lists(WORDS, min_size=1, max_size=4).map(tuple)
        pipeline: Pipeline = draw(st.lists(argv, min_size=1, max_size=3).map(tuple))
        value = pipeline
    elif resolvable:
        value = draw(st.sampled_from([".", "a", "a/b", "a/b/c", "b/a", "A/b"]))
    args = {name: "git log", "content": draw(st.sampled_from(["x", "y"]))}
    return ToolCallInfo(tool, args, agent=agent, primary=name, resolved={name: value})


DECISIONS = st.none() | st.builds(Decision, EFFECTS, st.just("why"), person_only=st.booleans())
SOURCES = st.fixed_dictionaries(
    {
        "metadata": st.none() | EFFECTS,
        "toolset": DECISIONS,
        "function": st.sampled_from([None, "allow", "deny", "ask"]),
        "calls_require_approval": st.booleans(),
    }
)
POLICIES = st.builds(Policy, st.none() | EFFECTS, st.lists(RULES, max_size=6).map(tuple))
RANK = {"allow": 0, "ask": 1, "deny": 2}


@given(calls(), POLICIES, PATTERNS, SOURCES)
def test_adding_a_deny_rule_never_allows_more(call: ToolCallInfo, policy: Policy, text: str, sources: dict) -> None:
    before, after = decide(call, policy, **sources), decide(call, policy.plus([a_rule("deny", text)]), **sources)
    assert after.effect in (before.effect, "deny")


@given(calls(), POLICIES, PATTERNS, SOURCES)
def test_adding_an_ask_rule_allows_nothing_new(call: ToolCallInfo, policy: Policy, text: str, sources: dict) -> None:
    before, after = decide(call, policy, **sources), decide(call, policy.plus([a_rule("ask", text)]), **sources)
    assert after.effect != "allow" or before.effect == "allow"
    assert after.effect in (before.effect, "ask")


@given(calls(), POLICIES, PATTERNS, SOURCES)
def test_adding_an_allow_rule_overrides_no_deny_or_ask_rule(
    call: ToolCallInfo, policy: Policy, text: str, sources: dict
) -> None:
    before, after = decide(call, policy, **sources), decide(call, policy.plus([a_rule("allow", text)]), **sources)
    if before.source in ("blocked", "deny", "ask") or before.person_only or sources["function"] in ("deny", "ask"):
        assert after == before
    assert RANK[after.effect] <= RANK[before.effect]


@given(calls(), POLICIES, SOURCES, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(call: ToolCallInfo, policy: Policy, sources: dict, random: object) -> None:
    shuffled = list(policy.rules)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = decide(call, Policy(policy.default, tuple(shuffled)), **sources)
    before = decide(call, policy, **sources)
    assert (other.effect, other.source) == (before.effect, before.source)


@given(calls(resolvable=False), POLICIES, PATTERNS)
def test_no_rule_allows_an_unresolved_argument(call: ToolCallInfo, policy: Policy, text: str) -> None:
    assert decide(call, policy.plus([a_rule("allow", text)])).source != "allow"


@given(calls(), POLICIES, SOURCES)
def test_blocks_denials_and_questions_for_a_person_hold_under_every_policy(
    call: ToolCallInfo, policy: Policy, sources: dict
) -> None:
    assert decide(call, policy, **{**sources, "toolset": Decision("deny")}).effect == "deny"
    assert decide(call, policy, **{**sources, "metadata": "deny"}).effect == "deny"
    assert decide(call, policy, **{**sources, "function": "deny"}).effect == "deny"
    assert decide(call, policy, **{**sources, "toolset": Decision("ask", "", person_only=True)}).effect != "allow"


AGENTS = st.sampled_from(["main", "x", "Main", "m*", "*i?", "x/main", "main/**", "**/x", "K"])
NAMED = st.builds(
    lambda effect, agent, text: a_rule(effect, f"{agent}:{text}"),
    EFFECTS,
    AGENTS,
    st.sampled_from(["*", "send", "se*", "wr*"]),
)
ANY_RULES = st.lists(RULES | NAMED, max_size=6).map(tuple)


@given(
    calls(), ANY_RULES, st.sampled_from(["main", "x/main", "main/x", "K"]), st.sampled_from([(), ("x",), ("main", "x")])
)
def test_rules_that_can_match_no_call_of_a_tool_by_an_agent_decide_nothing(
    call: ToolCallInfo, rules: tuple[Rule, ...], path: str, makers: tuple[str, ...]
) -> None:
    call = replace(call, agent=path.rpartition("/")[2], path=path, makers=makers)
    policy = Policy(None, rules)
    assert decide(call, policy.about(call)) == decide(call, policy)
