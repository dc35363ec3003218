"""What a session is configured with: limits that are limits, patterns that are patterns, and one way to say it all."""

from __future__ import annotations

from typing import Any

import pytest

from llm_do import Runtime, RuntimeConfig, UsageError
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script


def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def project() -> Any:
    return project_of([agent("main", script([call("send", to="ann")], "fin"), tools=[send])])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_steps", 0, "max_steps must be a whole number, 1 or more, not 0"),
        ("max_steps", "3", "max_steps must be a whole number, 1 or more, not '3'"),
        ("max_steps", True, "max_steps must be a whole number, 1 or more, not True"),
        ("max_depth", 0, "max_depth must be a whole number, 1 or more, not 0"),
        ("max_retries", -1, "max_retries must be a whole number, 0 or more, not -1"),
        ("loop_threshold", 1.5, "loop_threshold must be a whole number, 0 or more, not 1.5"),
        ("run_timeout", 0, "run_timeout must be a number of seconds above 0, not 0"),
        ("max_concurrency", 0, "max_concurrency must be a whole number, 1 or more, not 0"),
        ("max_result_bytes", 0, "max_result_bytes must be a whole number, 1 or more, not 0"),
        ("tool_timeout", -1, "tool_timeout must be a number of seconds above 0, not -1"),
        ("run_timeout", float("nan"), "run_timeout must be a number of seconds above 0, not nan"),
    ],
)
def test_what_is_no_limit_is_refused_and_named(name: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        RuntimeConfig.of(project(), **{name: value})

    assert error.value.message == said


def test_a_runtime_refuses_them_too() -> None:
    with pytest.raises(UsageError, match="max_steps must be a whole number"):
        Runtime(project(), max_steps=0)


@pytest.mark.parametrize("limits", [{"max_steps": 1, "max_depth": 1, "max_retries": 0, "loop_threshold": 0}])
def test_the_least_limits_are_limits(limits: dict[str, int]) -> None:
    config = Runtime(project(), run_timeout=0.5, **limits).config

    assert (config.max_steps, config.settings.max_depth) == (1, 1)
    assert (config.settings.max_retries, config.settings.loop_threshold) == (0, 0)


def test_an_agent_that_may_make_no_request_makes_none() -> None:
    model = script("x")

    assert carry_out(Runtime(project_of([agent("main", model, max_steps=0)]))).status == "limited"
    assert model.asked == []


@pytest.mark.parametrize("denied", ["send", ["send"], ("send(to=a*)",)], ids=repr)
def test_a_text_is_one_pattern_and_not_its_letters(denied: Any) -> None:
    result = carry_out(Runtime(project(), approvals="approve_all", deny=denied))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["denied"]


@pytest.mark.parametrize("option", ["allow", "deny"])
@pytest.mark.parametrize("given", [3, ["send", 3], [None]], ids=repr)
def test_what_is_no_text_is_no_pattern(option: str, given: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} must be patterns of calls, each a text, not"):
        Runtime(project(), **{option: given})


def test_a_text_allows_what_it_says() -> None:
    result = carry_out(Runtime(project(), allow="send(to=ann)"))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"]


def test_a_config_says_everything_so_that_nothing_besides_is_lost() -> None:
    with pytest.raises(UsageError, match="approvals, max_steps can't be combined with config"):
        Runtime(project(), approvals="approve_all", max_steps=3, config=RuntimeConfig())

    config = RuntimeConfig.of(project(), approvals="approve_all")
    assert Runtime(project(), config=config).config is config
