from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pydantic_ai.models import known_model_names
from pydantic_ai.providers import infer_provider_class

from llm_do import Runtime, RuntimeConfig
from llm_do._extras import install_command
from llm_do.errors import ModelUnavailableError
from llm_do.models import Choice, ModelOverride, check_model_name, choose_model, parse_override
from llm_do.models.provider_packages import missing_package
from llm_do.models.providers.known_prices import price_known
from llm_do.models.providers.model_names import (
    BUILT_IN,
    DEFAULT_MODELS,
    LEFT_OUT,
    PROVIDERS,
    available_keys,
    local_server,
    split_name,
)
from tests.support.runs import agent, carry_out, project_of
from tests.support.tables import each_row

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


def test_every_pydantic_ai_provider_is_known_or_deliberately_omitted() -> None:
    import inspect
    import re

    source = inspect.getsource(infer_provider_class)
    had = {name for case in re.findall(r"case (.+):", source) for name in re.findall(r"'([^']+)'", case)}
    assert had - set(PROVIDERS) - set(LEFT_OUT) == set()


@each_row(
    "name, hint",
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
def test_an_invalid_name_suggests_the_closest(name: str, hint: str) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        check_model_name(name, agent="main", file=FILE)
    assert raised.value.hint == hint
    assert raised.value.file == FILE
    assert "'main'" in raised.value.message
    assert "\n" not in raised.value.message


@each_row("name", ["test", "local", "local:a.gguf", "script:a.yaml", "openai:gpt-5", "mine:x", "ollama:a:7b"])
def test_a_valid_name_passes(name: str) -> None:
    check_model_name(name, registered=["mine"])


@given(st.text())
def test_any_text_can_be_parsed_and_checked_as_a_name(name: str) -> None:
    prefix, rest = split_name(name)
    assert name in (prefix + ":" + rest, rest, prefix)
    try:
        check_model_name(name)
    except ModelUnavailableError:
        pass
    else:
        assert prefix in PROVIDERS or prefix in BUILT_IN


def test_the_callers_model_overrides_all_others() -> None:
    override = ModelOverride("test")
    environ = {"LLM_DO_MODEL": "openai:env"}
    choice = choose_model("main", "openai:own", environ=environ, override=override, manifest="openai:all")
    assert choice == Choice(("test",), "override")


def test_a_model_for_one_agent_overrides_the_model_for_all() -> None:
    override = parse_override(["test", "critic=openai:gpt-5"])
    assert choose_model("critic", environ={}, override=override).names == ("openai:gpt-5",)
    assert choose_model("main", environ={}, override=override).names == ("test",)


@each_row(
    "declared, environment, manifest, expected",
    [
        ("openai:own", "openai:env", "openai:all", Choice(("openai:own",), "agent")),
        (None, "openai:env", "openai:all", Choice(("openai:env",), "environment")),
        (None, "", "openai:all", Choice(("openai:all",), "manifest")),
        (["a:1", "b:2"], "", None, Choice(("a:1", "b:2"), "agent")),
    ],
)
def test_the_first_source_that_names_a_model_wins(declared, environment, manifest, expected) -> None:
    assert choose_model("main", declared, environ={"LLM_DO_MODEL": environment}, manifest=manifest) == expected


def test_without_a_name_and_a_key_an_available_local_model_is_used() -> None:
    assert choose_model("main", environ={"OPENAI_API_KEY": ""}, local_available=lambda: True) == Choice(
        ("local",), "local"
    )


@each_row("prefix", DEFAULT_MODELS)
def test_a_key_suffices(prefix: str) -> None:
    for key in PROVIDERS[prefix].keys:
        choice = choose_model("main", environ={key: "k"}, local_available=lambda: True, file=FILE)
        assert choice == Choice((f"{prefix}:{DEFAULT_MODELS[prefix]}",), "key")


def test_a_model_that_nobody_named_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing listens there, so nothing leaves the machine
    notices: list[str] = []
    project = project_of([agent("main", None)], max_retries=0)
    result = carry_out(Runtime(project, config=RuntimeConfig.of(project, notice=notices.append)))

    assert result.status == "provider_failed"
    assert notices == [
        "no model is named: using openai:gpt-6.1-terra, as OPENAI_API_KEY is set; name another with model="
    ]


@each_row("prefix", DEFAULT_MODELS)
def test_a_default_model_exists_has_a_price_and_needs_no_other_package(prefix: str) -> None:
    name = f"{prefix}:{DEFAULT_MODELS[prefix]}"
    assert name in known_model_names()
    assert price_known(name)
    assert missing_package(prefix) is None


def test_of_several_keys_the_first_that_fits_counts() -> None:
    environ = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GROQ_API_KEY": "k"}
    assert choose_model("main", environ=environ).names[0].startswith("anthropic:")
    assert choose_model("main", environ=environ, compatible=["OpenAI:*"]).names[0].startswith("openai:")
    assert choose_model("main", environ=environ, manifest="test") == Choice(("test",), "manifest")


@pytest.mark.parametrize(
    "environ", [{"GROQ_API_KEY": "k"}, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://localhost:8000/v1"}]
)
def test_a_key_without_a_default_model_keeps_the_local_model_from_being_used(environ: dict[str, str]) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model("main", environ=environ, local_available=lambda: True, file=FILE)
    assert next(iter(environ)) in (raised.value.hint or "")
    assert "`model='local'` runs" in (raised.value.hint or "")


def test_without_any_model_the_error_lists_the_ways_to_choose_one() -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model("main", environ={}, file=FILE)
    error = raised.value
    assert error.message == "agent 'main' has no model"
    assert error.file == FILE
    ways = (
        "OPENAI_API_KEY",
        "`model='PROVIDER:NAME'`",
        "LLM_DO_MODEL",
        "manifest",
        "llm-do models pull",
        install_command("local"),
    )
    for way in ways:
        assert way in (error.hint or "")


def test_a_named_model_skips_the_search_for_the_local_model() -> None:
    def never() -> bool:
        raise AssertionError

    choose_model("main", "test", environ={}, local_available=never)


@pytest.mark.parametrize("name", ["Anthropic:Claude-X", "local"])
def test_compatible_models_match_case_insensitively(name: str) -> None:
    assert choose_model("main", environ={"LLM_DO_MODEL": name}, compatible=["anthropic:*", "LOCAL"]).names == (name,)


@pytest.mark.parametrize("override", [None, ModelOverride("openai:gpt-5")])
def test_an_incompatible_model_is_refused_from_any_source(override: ModelOverride | None) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        choose_model(
            "main", environ={"LLM_DO_MODEL": "openai:gpt-5"}, override=override, compatible=["anthropic:*"], file=FILE
        )
    for part in ("main", "openai:gpt-5", "anthropic:*"):
        assert part in raised.value.message


def test_an_incompatible_local_model_is_refused_too() -> None:
    with pytest.raises(ModelUnavailableError, match="not compatible with the model 'local'"):
        choose_model("main", environ={}, local_available=lambda: True, compatible=["anthropic:*"])


def test_paths_in_project_files_are_relative_to_the_project() -> None:
    root = Path("/project")
    assert choose_model("main", "script:a.yaml", environ={}, root=root).names == ("script:/project/a.yaml",)
    assert choose_model("main", environ={}, manifest="local:m.gguf", root=root).names == ("local:/project/m.gguf",)
    assert choose_model("main", environ={"LLM_DO_MODEL": "script:a.yaml"}, root=root).names == ("script:a.yaml",)
    assert choose_model("main", "local:http://h/v1#m", environ={}, root=root).names == ("local:http://h/v1#m",)


def test_the_home_of_an_unknown_user_is_an_ordinary_path() -> None:
    root = Path("/project")
    assert choose_model("main", "script:~no-such-user/a.yaml", environ={}, root=root).names == (
        "script:/project/~no-such-user/a.yaml",
    )


def test_an_equals_sign_inside_a_model_name_does_not_select_an_agent() -> None:
    assert parse_override(["local:http://h/v1?a=b#m"]).everyone == "local:http://h/v1?a=b#m"


def test_an_empty_override_counts_as_none() -> None:
    assert choose_model("main", "test", environ={}, override=parse_override([""])).origin == "agent"


def test_keys_are_found_unless_they_are_empty() -> None:
    assert available_keys({"OPENAI_API_KEY": "k", "GROQ_API_KEY": "", "HOME": "/"}) == ["OPENAI_API_KEY"]


def test_a_custom_server_needs_no_model_name() -> None:
    assert local_server("http://h/v1") == ("http://h/v1", "default")


@each_row(
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
def test_a_price_is_known_by_name_and_local_models_are_free(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for info in PROVIDERS.values():
        for key in info.keys:
            monkeypatch.delenv(key, raising=False)
    assert price_known(name)


@each_row("name", ["openai:no-such-model", "ollama:qwen3", "vllm:gpt-5-mini", "unknown:gpt-5-mini"])
def test_a_model_missing_from_the_price_list_has_no_price(name: str) -> None:
    assert not price_known(name)


def test_a_key_for_a_server_of_ones_own_says_how_its_models_are_named() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}

    with pytest.raises(ModelUnavailableError) as raised:
        choose_model("main", environ=environ)

    assert raised.value.hint is not None
    assert "(OPENAI_API_KEY and OPENAI_BASE_URL are set; a model of that server is named `openai-chat:NAME`)" in (
        raised.value.hint
    )
