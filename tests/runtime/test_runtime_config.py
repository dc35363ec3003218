"""Configuring a session: valid limits, valid patterns, and one object for all options."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from llm_do import AgentSpec, Project, Runtime, RuntimeConfig, UsageError, run
from llm_do.formats.parts.limits import RuntimeFile
from llm_do.linker.sources.conversion import runtime_settings
from llm_do.project.project import Overrides, RecordSettings, RuntimeSettings
from llm_do.runtime.session.durable_runs import options_as_begun
from llm_do.runtime.session.run_options import Option, RunOptions, RuntimeOptions
from llm_do.runtime.session.runtime_config import ConfigOptions
from llm_do.testing import play
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

LEAST: dict[str, int] = {
    name: mark.ge
    for name, info in RuntimeFile.model_fields.items()
    for mark in info.metadata
    if isinstance(getattr(mark, "ge", None), int) and info.annotation is int
}
"""The settings of a manifest that are counts, with their smallest values."""


def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def project() -> Any:
    return project_of([agent("main", script([call("send", to="ann")], "fin"), tools=[send])])


@each_row(
    "name, value, message",
    [
        ("max_steps", 0, "max_steps must be a whole number, 1 or more, not 0"),
        ("max_steps", "3", "max_steps must be a whole number, 1 or more, not '3'"),
        ("max_steps", True, "max_steps must be a whole number, 1 or more, not True"),
        ("max_depth", 0, "max_depth must be a whole number, 1 or more, not 0"),
        ("max_retries", -1, "max_retries must be a whole number, 0 or more, not -1"),
        ("loop_threshold", 1.5, "loop_threshold must be a whole number, 0 or more, not 1.5"),
        ("run_timeout", 0, "run_timeout must be a number of seconds above 0, not 0"),
        ("max_concurrency", 0, "max_concurrency must be a whole number, 1 or more, not 0"),
        ("max_calls_per_response", 0, "max_calls_per_response must be a whole number, 1 or more, not 0"),
        ("max_result_bytes", 0, "max_result_bytes must be a whole number, 1 or more, not 0"),
        (
            "record_settings",
            RecordSettings(keep_days=0),
            "record_settings.keep_days must be a whole number, 1 or more, not 0",
        ),
        (
            "record_settings",
            RecordSettings(max_mb=True),
            "record_settings.max_mb must be a whole number, 1 or more, not True",
        ),
        ("record_settings", {"max_mb": 1}, "record_settings must be RecordSettings, not {'max_mb': 1}"),
        ("tool_timeout", -1, "tool_timeout must be a number of seconds above 0, not -1"),
        ("run_timeout", float("nan"), "run_timeout must be a number of seconds above 0, not nan"),
    ],
)
def test_an_invalid_limit_is_rejected_by_name(name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        RuntimeConfig.of(project(), **{name: value})

    assert error.value.message == message


UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "models": ({"models": {"mian": "test"}}, "models names 'mian'"),
    "allow": ({"allow": ["send", "mian:send"]}, "allow='mian:send' names 'mian'"),
    "deny": ({"deny": "mian:send"}, "deny='mian:send' names 'mian'"),
    "a path": ({"deny": ["main/mian:send"]}, "deny='main/mian:send' names 'mian'"),
    "an earlier part of a path": ({"deny": ["mian/2/main:send"]}, "deny='mian/2/main:send' names 'mian'"),
    "what is below an agent": ({"allow": ["mian/**:send"]}, "allow='mian/**:send' names 'mian'"),
    "an iterator": ({"deny": iter(["mian:send"])}, "deny='mian:send' names 'mian'"),
    "overrides": (
        {"agent_approval_overrides": {"mian": Overrides(calls_require_approval=True)}},
        "agent_approval_overrides names 'mian'",
    ),
}


@each_row("name", UNKNOWN)
def test_an_option_for_an_agent_that_doesn_t_exist_is_rejected_with_the_name_that_was_meant(name: str) -> None:
    options, message = UNKNOWN[name]
    with pytest.raises(UsageError) as error:
        Runtime(project(), config=RuntimeConfig.of(project(), **options))

    assert error.value.message == f"{message}, and the project has no such agent"
    assert error.value.hint == "did you mean `main`?"


def test_a_configuration_for_an_agent_that_doesn_t_exist_is_rejected_by_its_runtime() -> None:
    with pytest.raises(UsageError, match="models names 'critic', and the project has no such agent") as error:
        Runtime(project(), config=RuntimeConfig(models={"critic": "test"}))
    assert error.value.hint == "Its agents are main."
    with pytest.raises(UsageError, match="models names 'critic'"):
        run.sync(AgentSpec("main", model="test"), "go", models={"critic": "test"})


def test_agents_that_code_passes_or_a_run_may_create_can_be_named() -> None:
    critic, maker = agent("critic", "test"), agent("maker", "test", toolsets=["dynamic_agents"])
    nested = project_of([agent("main", "test", handoffs=[critic])])

    assert Runtime(nested, models={"critic": "test"}, deny=["critic:send", "main/critic:send", "late*:send"])
    assert Runtime(nested, allow=["main/**:send", "main/*/critic:send", "main/2/critic:send", "main/late*/critic:send"])
    assert Runtime(project_of([maker]), deny=["later/made:send"])
    assert Runtime(project_of([maker]), models={"made": "test"}, deny=["made:send"])


@each_row("option, pattern", [(name, text) for name in ("allow", "deny") for text in ("slwo", "main:slwo(text=x)")])
def test_a_pattern_that_names_no_tool_is_a_warning_on_the_line_of_the_run(option: str, pattern: str) -> None:
    runtime = Runtime(slow_project(), **{option: [pattern, "slow"]})  # type: ignore[arg-type]

    with pytest.warns(UserWarning, match="can't match") as warned:
        runtime.run_sync("go")
    runtime.run_sync("go")

    [warning] = warned
    assert str(warning.message) == (f"{option}: {pattern} can't match: no agent has such a tool; did you mean `slow`?")
    assert warning.filename == __file__


def test_patterns_that_may_match_are_no_warning() -> None:
    """Of globs, built-in tools, tools that come before the run, and of agents that are made in it."""
    patterns = ["sl*", "s[l]ow", "shell(rm *)", "slow(x)", "server_*", "later"]
    runtime = Runtime(slow_project(), deny=patterns)
    runtime.register_tools({"later": slow})
    runtime.register_agents({"late": agent("late", "test", tools=["later"])})
    assert runtime.run_sync("go").status == "completed"

    maker = agent("maker", "test", toolsets=["todo", "dynamic_agents"], tools=["slow"])
    makers = project_of([maker], tools={"slow": slow})
    assert Runtime(makers, approvals="reject_all", deny=["slwo"], max_steps=3).run_sync("go")


def test_the_inputs_of_a_batch_are_run_with_patterns_that_are_compared(tmp_path: Path) -> None:
    runtime = Runtime(slow_project(), deny=["slwo"], store=tmp_path / "state.db")
    with pytest.warns(UserWarning, match="deny: slwo can't match"):
        runtime.map(["a"])


def slow(text: str = "") -> str:
    """Take long."""
    return text


def slow_project() -> Project:
    return project_of([agent("main", "test", tools=["slow"])], tools={"slow": slow})


@each_row("everyone", [None, "test", FunctionModel(lambda _, __: ModelResponse([TextPart("everyone's")]))])
def test_the_model_of_one_agent_may_be_an_object(everyone: Any) -> None:
    own = FunctionModel(lambda _, __: ModelResponse([TextPart("its own")]))
    both = project_of([agent("main", "test"), agent("other", "test")])
    runtime = Runtime(both, model=everyone, models={"main": own})

    assert runtime.run_sync("go").output == "its own"
    assert runtime.run_sync("go", entry="other").output != "its own"
    assert runtime.config.kept_options["models"] == {}
    assert play(both, "go", models={"main": own}).output == "its own"
    assert run.sync(AgentSpec("main"), "go", models={"main": own}).output == "its own"


def test_the_model_of_one_agent_is_not_a_list() -> None:
    with pytest.raises(UsageError, match="models must be models by names of agents, each a name or a PydanticAI model"):
        Runtime(project(), models={"main": ["test"]})  # type: ignore[dict-item]


def test_a_run_that_is_resumed_without_an_agent_is_resumed_without_its_options() -> None:
    both = project_of([agent("main", "test"), agent("critic", "test")])
    chosen = {"models": {"main": "test", "critic": "test"}, "allow": ["critic:a", "b"], "deny": ["critic:c", "main:d"]}
    beginning: Any = SimpleNamespace(options=RuntimeConfig.of(both, **chosen).kept_options)

    resumed = RuntimeConfig.of(project(), **options_as_begun(project(), beginning))

    assert (resumed.models, resumed.allow, resumed.deny) == ({"main": "test"}, ("b",), ("main:d",))


def test_a_runtime_rejects_invalid_limits_too() -> None:
    with pytest.raises(UsageError, match="max_steps must be a whole number"):
        Runtime(project(), max_steps=0)


@pytest.mark.parametrize("limits", [{"max_steps": 1, "max_depth": 1, "max_retries": 0, "loop_threshold": 0}])
def test_the_smallest_limits_are_valid(limits: dict[str, int]) -> None:
    config = Runtime(project(), run_timeout=0.5, **limits).config

    assert (config.max_steps, config.settings.max_depth) == (1, 1)
    assert (config.settings.max_retries, config.settings.loop_threshold) == (0, 0)


def test_an_agent_that_may_make_no_request_makes_none() -> None:
    model = script("x")

    assert carry_out(Runtime(project_of([agent("main", model, max_steps=0)]))).status == "invalid"
    assert model.asked == []


@pytest.mark.parametrize("denied", ["send", ["send"], ("send(to=a*)",)], ids=repr)
def test_a_string_is_one_pattern_and_not_its_characters(denied: Any) -> None:
    result = carry_out(Runtime(project(), approvals="approve_all", deny=denied))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["denied"]


@pytest.mark.parametrize("option", ["allow", "deny"])
@pytest.mark.parametrize("given", [3, ["send", 3], [None]], ids=repr)
def test_a_pattern_must_be_a_string(option: str, given: Any) -> None:
    with pytest.raises(UsageError, match=f"{option} must be patterns of calls, each a string, not"):
        Runtime(project(), **{option: given})


def test_a_string_pattern_allows_its_calls() -> None:
    result = carry_out(Runtime(project(), allow="send(to=ann)"))

    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["success"]


def test_a_config_cannot_be_combined_with_other_options() -> None:
    with pytest.raises(UsageError, match="approvals, max_steps can't be combined with config"):
        Runtime(project(), approvals="approve_all", max_steps=3, config=RuntimeConfig())

    config = RuntimeConfig.of(project(), approvals="approve_all")
    assert Runtime(project(), config=config).config is config


@each_row("name", [each.name for each in dataclasses.fields(RuntimeSettings)])
def test_a_setting_has_one_default_in_a_manifest_and_in_python(name: str) -> None:
    default = getattr(runtime_settings(RuntimeFile()), name)

    assert default == getattr(RuntimeSettings(), name), "RuntimeFile and RuntimeSettings differ"
    assert {"record_settings": "record"}.get(name, name) in RuntimeFile.model_fields, "a manifest can't set it"


@each_row("name", LEAST)
def test_a_count_has_the_same_smallest_value_in_a_manifest_and_in_python(name: str) -> None:
    assert RuntimeConfig.of(project(), **{name: LEAST[name]})
    try:
        RuntimeConfig.of(project(), **{name: LEAST[name] - 1})
    except UsageError:
        return
    pytest.fail(f"{LEAST[name] - 1} is accepted: `LEAST` in llm_do/formats/parts/least_counts.py has the limits")


@each_row("name", [name for name in RunOptions.__annotations__ if name in LEAST])
def test_an_option_of_the_command_line_has_the_smallest_value_of_its_setting(name: str) -> None:
    _, option = get_args(RunOptions.__annotations__[name])
    assert isinstance(option, Option)

    assert option.minimum == LEAST[name] or not option.flags, (
        f"its `minimum` must be that of the manifest, {LEAST[name]}"
    )


@each_row("name", sorted({*RuntimeOptions.__annotations__, *ConfigOptions.__annotations__}))
def test_an_option_of_a_session_is_a_field_of_its_configuration_or_of_the_settings(name: str) -> None:
    known = {each.name for kind in (RuntimeConfig, RuntimeSettings) for each in dataclasses.fields(kind)}

    assert name in known, "add it to RuntimeSettings if a manifest has it, else to RuntimeConfig"


@each_row("name", [each.name for each in dataclasses.fields(RuntimeSettings)])
def test_a_setting_can_be_changed_for_a_session(name: str) -> None:
    # The manifest's word for it is `approvals` there.
    assert name in {*ConfigOptions.__annotations__, "approval_mode"}, "add it to ConfigOptions"


OF_A_PROCESS = {"approvals", "record", "store", "transport", "durable", "retry_delay", "ask_user", "notice"}
"""Fields of a configuration that whoever resumes a run chooses anew."""


@each_row("name", sorted({each.name for each in dataclasses.fields(RuntimeConfig)} - OF_A_PROCESS))
def test_a_run_that_is_resumed_has_the_options_that_it_began_with(name: str) -> None:
    kept = RuntimeConfig.of(project()).kept_options

    assert name in kept, "add it to `kept_options` and `options_as_begun`, or here if whoever resumes a run chooses it"


def test_what_is_kept_of_options_is_read_when_a_run_is_resumed() -> None:
    chosen = {"model": "test", "models": {"main": "test"}, "allow": ["add"], "deny": ["drop"], "max_steps": 3}
    begun = RuntimeConfig.of(project(), **chosen, frozen=True, env_file="keys.env", max_depth=7)
    beginning: Any = SimpleNamespace(options=begun.kept_options)

    resumed = RuntimeConfig.of(project(), **options_as_begun(project(), beginning))

    assert resumed.kept_options == begun.kept_options
