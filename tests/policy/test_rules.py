"""Parsing a project's rules into a policy."""

from __future__ import annotations

import pytest

from llm_do.policy.pattern import PatternError
from llm_do.policy.rules import Policy, build_policy, option_rules


def test_every_field_of_approvals_is_parsed() -> None:
    policy, faults = build_policy(
        {
            "default": "deny",
            "deny": ["shell(rm *)"],
            "ask": [{"rule": "write_file", "why": "look first"}],
            "allow": [{"rule": "shell(git log *)", "allows": ["git log"], "refuses": ["git push"]}],
            "policy": "approvals.py:mine",
        },
        lambda path: "project.json:" + ".".join(map(str, path)),
    )
    assert not faults
    assert policy.default == "deny"
    assert policy.function == "approvals.py:mine"
    assert [(one.effect, one.text, one.why) for one in policy.rules] == [
        ("deny", "shell(rm *)", ""),
        ("ask", "write_file", "look first"),
        ("allow", "shell(git log *)", ""),
    ]
    assert policy.denies[0].place == "project.json:approvals.deny.0"
    assert policy.asks[0].place == "project.json:approvals.ask.0.rule"
    assert (policy.allows[0].allows, policy.allows[0].refuses) == (("git log",), ("git push",))


def test_missing_approvals_are_an_empty_policy() -> None:
    assert build_policy({}) == (Policy(), ())


def test_every_invalid_rule_is_reported_and_the_others_are_kept() -> None:
    policy, faults = build_policy({"deny": ["x(", "ok"], "allow": [{"rule": "a b"}], "ask": [""]})
    assert [one.text for one in policy.rules] == ["ok"]
    assert [(fault.path, fault.column) for fault in faults] == [
        (("approvals", "deny", 0), 3),
        (("approvals", "ask", 0), 1),
        (("approvals", "allow", 0, "rule"), 2),
    ]
    assert all(fault.hint for fault in faults)


def test_option_rules_name_the_option_and_reject_invalid_patterns() -> None:
    assert [(one.effect, one.place) for one in option_rules("deny", ["a", "b(x)"])] == [("deny", "--deny")] * 2
    with pytest.raises(PatternError):
        option_rules("deny", ["a("])
