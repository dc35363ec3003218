"""Gates and rules that name a tool of a server or factory wrongly end the run before any call; allowing rules warn."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from llm_do.policy.rules import Policy, build_policy
from llm_do.project.gates import Gate
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def deploy(to: str) -> str:
    """Deploy."""
    RAN.append(to)
    return "deployed"


def factory(ctx: Any) -> FunctionToolset[Any]:
    return FunctionToolset([deploy])


def deployer(name: str = "main", **fields: Any) -> Any:
    return agent(name, script([call("deploy", to="prod")], "fin"), toolsets=[factory], **fields)


def policy(**rules: list[str]) -> Policy:
    made, faults = build_policy(rules)
    assert faults == ()
    return made


@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("rule", ["deplyo", "deplyo(to=prod)", "main:deplyo", "main:undo"])
def test_a_rule_that_restricts_nothing_ends_the_run_before_any_call(effect: str, rule: str) -> None:
    result = carry_out(runtime_of([deployer()], policy=policy(**{effect: [rule]})))

    assert (result.status, RAN) == ("failed", [])
    assert f"the rule {rule} matches nothing: agent 'main' has no tool" in str(result.error)


def test_a_rule_that_allows_nothing_is_a_warning() -> None:
    runtime = runtime_of([deployer()], policy=policy(allow=["deplyo"]))
    ear = heard(runtime, "warning")
    result = carry_out(runtime)

    assert (result.status, RAN) == ("completed", ["prod"])
    assert ["the rule deplyo matches nothing: agent 'main' has no tool 'deplyo'" in e.message for e in ear.events] == [
        True
    ]


def test_options_are_judged_like_rules() -> None:
    denied = carry_out(runtime_of([deployer()], options={"deny": ["deplyo"]}))
    allowed = carry_out(runtime_of([deployer()], options={"allow": ["deplyo"]}))

    assert (denied.status, allowed.status, RAN) == ("failed", "completed", ["prod"])


def test_a_gate_of_a_tool_that_is_not_there_ends_the_run_before_any_call() -> None:
    result = carry_out(runtime_of([deployer(states={"deplyo": Gate(requires=("tested",))})]))

    assert (result.status, RAN) == ("failed", [])
    assert "gates the tool 'deplyo', which it doesn't have" in str(result.error)


@pytest.mark.parametrize(
    "rules",
    [
        {"deny": ["undo"], "allow": ["deploy"]},
        {"deny": ["other:deplyo"]},
        {"deny": ["depl*_x"]},
        {"deny": ["shell(rm *)", "delete_file"]},
        {"ask": ["deploy(to=elsewhere)"]},
    ],
)
def test_rules_about_other_tools_and_agents_are_left_alone(rules: dict[str, list[str]]) -> None:
    result = carry_out(runtime_of([deployer(), deployer("other")], policy=policy(**rules)))

    assert (result.status, RAN) == ("completed", ["prod"])


def test_a_similar_name_that_another_agent_has_is_no_mistake() -> None:
    def deplox(to: str) -> str:
        """Another tool."""
        return to

    other = agent("other", script("x"), tools=[deplox])
    result = carry_out(runtime_of([deployer(), other], policy=policy(deny=["deplox"])))

    assert (result.status, RAN) == ("completed", ["prod"])


def test_an_agent_is_judged_when_it_is_first_called() -> None:
    main = agent("main", script([call("worker", input="go")], "fin"), toolsets=[worker := deployer("worker")])
    result = carry_out(runtime_of([main, worker], policy=policy(deny=["worker:deplyo"])))

    assert RAN == []
    assert any("matches nothing" in str(record.error) for record in result.calls if record.error)
