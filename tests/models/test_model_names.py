from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.models import known_model_names
from pydantic_ai.providers import infer_provider_class

from llm_do.errors import ModelUnavailableError
from llm_do.models import Choice, ModelOverride, check_model_name, choose_model, parse_override
from llm_do.models.providers.known_prices import price_known
from llm_do.models.providers.model_names import BUILT_IN, LEFT_OUT, PROVIDERS, available_keys, local_server, split_name

FILE = "main.agent"


def test_every_prefix_that_pydantic_ai_lists_is_known() -> None:
    listed = {name.partition(":")[0] for name in known_model_names()} - {"test"}
    assert listed - set(PROVIDERS) == set()


@pytest.mark.slow  # it imports every provider's package
def test_every_known_prefix_is_one_that_pydantic_ai_has() -> None:
    for prefix in PROVIDERS:
        try:
            infer_provider_class(prefix)
        except ImportError:
            continue  # it has the provider; the provider's package isn't installed


def test_every_provider_of_pydantic_ai_is_known_or_left_out_on_purpose() -> None:
    import inspect
    import re

    source = inspect.getsource(infer_provider_class)
    had = {name for case in re.findall(r"case (.+):", source) for name in re.findall(r"'([^']+)'", case)}
    assert had - set(PROVIDERS) - set(LEFT_OUT) == set()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpt-5", "did you mean `openai:gpt-5`?"),
        ("claude-x", "did you mean `anthropic:claude-x`?"),
        ("opnai:gpt-5", "did you mean `openai:gpt-5`?"),
        ("google-gla:gemini", "did you mean `google:gemini`?"),
        ("locl", "did you mean `local`?"),
        ("openai:", "write `openai:NAME`"),
        ("test:x", "write `test`"),
    ],
)
def test_a_wrong_name_says_what_was_meant(name: str, hint: str) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        check_model_name(name, agent="main", file=FILE)
    assert raised.value.hint == hint
    assert raised.value.file == FILE
    assert "'main'" in raised.value.message
    assert "\n" not in raised.value.message


@pytest.mark.parametrize(
    "name", ["test", "local", "local:a.gguf", "script:a.yaml", "openai:gpt-5", "mine:x", "ollama:a:7b"]
)
def test_a_right_name_passes(name: str) -> None:
    check_model_name(name, registered=["mine"])


@settings(deadline=None)
@given(st.text())
def test_any_text_is_taken_apart_and_checked_without_surprise(name: str) -> None:
    prefix, rest = split_name(name)
    assert name in (prefix + ":" + rest, rest, prefix)
    try:
        check_model_name(name)
    except ModelUnavailableError:
        pass
    else:
        assert prefix in PROVIDERS or prefix in BUILT_IN


def test_the_callers_model_comes_before_all_others() -> None:
    override = ModelOverride("test")
    environ = {"LLM_DO_MODEL": "openai:env"}
    choice = choose_model("main", "openai:own", environ=environ, override=override, manifest="openai:all")
    assert choice == Choice(("test",), "override")


def test_a_model_for_one_agent_comes_before_that_for_every_agent() -> None:
    override = parse_override(["test", "critic=openai:gpt-5"])
    assert choose_model("critic", environ={}, override=override).names == ("openai:gpt-5",)
    assert choose_model("main", environ={}, override=override).names == ("test",)


@pytest.mark.parametrize(
    ("declared", "environment", "manifest", "expected"),
    [
        ("openai:own", "openai:env", "openai:all", Choice(("openai:own",), "agent")),
        (None, "openai:env", "openai:all", Choice(("openai:env",), "environment")),
        (None, "", "openai:all", Choice(("openai:all",), "manifest")),
        (["a:1", "b:2"], "", None, Choice(("a:1", "b:2"), "agent")),
    ],
)
def test_the_first_that_names_a_model_wins(declared, environment, manifest, expected) -> None:
    assert choose_model("main", declared, environ={"LLM_DO_MODEL": environment}, manifest=manifest) == expected


def test_without_a_name_and_a_key_the_local_model_is_used_where_it_is_at_hand() -> None:
    assert choose_model("main", environ={"OPENAI_API_KEY": ""}, local_at_hand=lambda: True) == Choice(
        ("local",), "local"
    )


def test_the_local_model_is_never_used_where_there_is_a_key() -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model("main", environ={"OPENAI_API_KEY": "k"}, local_at_hand=lambda: True, file=FILE)
    assert "OPENAI_API_KEY is set" in (raised.value.hint or "")
    assert "--model local" in (raised.value.hint or "")


def test_without_any_model_the_error_lists_the_ways_to_name_one() -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model("main", environ={}, file=FILE)
    error = raised.value
    assert error.message == "agent 'main' has no model"
    assert error.file == FILE
    for way in ("--model", "LLM_DO_MODEL", "manifest", "llm-do models pull", "pip install 'llm-do[local]'"):
        assert way in (error.hint or "")


def test_whether_the_local_model_is_at_hand_is_not_asked_when_a_model_is_named() -> None:
    def never() -> bool:
        raise AssertionError

    choose_model("main", "test", environ={}, local_at_hand=never)


@pytest.mark.parametrize("name", ["Anthropic:Claude-X", "local"])
def test_a_compatible_model_is_matched_in_any_case(name: str) -> None:
    assert choose_model("main", environ={"LLM_DO_MODEL": name}, compatible=["anthropic:*", "LOCAL"]).names == (name,)


@pytest.mark.parametrize("override", [None, ModelOverride("openai:gpt-5")])
def test_an_incompatible_model_is_refused_wherever_it_was_named(override: ModelOverride | None) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model(
            "main", environ={"LLM_DO_MODEL": "openai:gpt-5"}, override=override, compatible=["anthropic:*"], file=FILE
        )
    for part in ("main", "openai:gpt-5", "anthropic:*"):
        assert part in raised.value.message


def test_an_incompatible_local_model_is_refused_too() -> None:
    with pytest.raises(ModelUnavailableError, match="not compatible with the model 'local'"):
        choose_model("main", environ={}, local_at_hand=lambda: True, compatible=["anthropic:*"])


def test_paths_in_a_projects_files_start_at_the_project() -> None:
    root = Path("/project")
    assert choose_model("main", "script:a.yaml", environ={}, root=root).names == ("script:/project/a.yaml",)
    assert choose_model("main", environ={}, manifest="local:m.gguf", root=root).names == ("local:/project/m.gguf",)
    assert choose_model("main", environ={"LLM_DO_MODEL": "script:a.yaml"}, root=root).names == ("script:a.yaml",)
    assert choose_model("main", "local:http://h/v1#m", environ={}, root=root).names == ("local:http://h/v1#m",)


def test_the_home_of_a_user_that_does_not_exist_is_a_path_like_any_other() -> None:
    root = Path("/project")
    assert choose_model("main", "script:~nobody-of-this-name/a.yaml", environ={}, root=root).names == (
        "script:/project/~nobody-of-this-name/a.yaml",
    )


def test_an_equals_sign_in_a_models_name_does_not_name_an_agent() -> None:
    assert parse_override(["local:http://h/v1?a=b#m"]).everyone == "local:http://h/v1?a=b#m"


def test_an_empty_override_counts_as_none() -> None:
    assert choose_model("main", "test", environ={}, override=parse_override([""])).origin == "agent"


def test_keys_are_found_and_empty_ones_are_not() -> None:
    assert available_keys({"OPENAI_API_KEY": "k", "GROQ_API_KEY": "", "HOME": "/"}) == ["OPENAI_API_KEY"]


def test_a_server_of_ones_own_needs_no_models_name() -> None:
    assert local_server("http://h/v1") == ("http://h/v1", "default")


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-5-mini",
        "openai-chat:gpt-5-mini",
        "azure-responses:gpt-4o",
        "gateway/anthropic:claude-sonnet-4-5",
        "xai:grok-4",
        "local",
        "local:model.gguf",
        "local:http://localhost:8080/v1#qwen",
        "script:answers.yaml",
        "test",
    ],
)
def test_a_price_is_known_by_the_name_alone_and_what_runs_here_costs_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for info in PROVIDERS.values():
        for key in info.keys:
            monkeypatch.delenv(key, raising=False)
    assert price_known(name)


@pytest.mark.parametrize("name", ["openai:no-such-model", "ollama:qwen3", "vllm:gpt-5-mini", "nobody:gpt-5-mini"])
def test_what_the_price_list_lacks_has_no_known_price(name: str) -> None:
    assert not price_known(name)
