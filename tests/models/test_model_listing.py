from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llm_do._extras import install_command
from llm_do.models import available_models, catalog, is_local_available, register_model_factory
from llm_do.models.builtin import weights
from llm_do.models.providers.model_names import PROVIDERS


def listed(environ: dict[str, str]) -> dict[str, catalog.ModelInfo]:
    return {info.name: info for info in available_models(environ)}


def test_every_kind_of_model_is_listed_once() -> None:
    names = [info.name for info in available_models({})]
    assert len(names) == len(set(names))
    for name in ("local", "local:PATH.gguf", "local:URL#NAME", "script:PATH", "test"):
        assert name in names
    assert {f"{prefix}:NAME" for prefix in PROVIDERS} <= set(names)


def test_a_provider_without_its_key_is_listed_with_the_missing_variable() -> None:
    assert listed({"GEMINI_API_KEY": "k"})["google:NAME"].usable
    without = listed({"GOOGLE_API_KEY": ""})["google:NAME"]
    assert (without.usable, without.note) == (False, "GOOGLE_API_KEY or GEMINI_API_KEY not set")


def test_a_provider_at_a_custom_address_needs_no_key() -> None:
    assert listed({"OPENAI_BASE_URL": "http://localhost/v1"})["openai-chat:NAME"].usable


def test_a_provider_without_its_package_says_so() -> None:
    info = listed({"GROQ_API_KEY": "k"})["groq:NAME"]
    assert (info.usable, info.note) == (False, "the provider 'groq' needs the package groq, which isn't installed")


def test_a_provider_that_lacks_several_things_lists_them_all() -> None:
    assert listed({})["azure:NAME"].note == "AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT not set"


def test_a_projects_own_prefix_is_listed() -> None:
    register_model_factory("listed", lambda name: pytest.fail("built"))
    assert listed({})["listed:NAME"].usable


def test_the_local_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_weights", lambda: None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    info = listed({})["local"]
    assert (info.usable, info.note) == (False, f"run `{install_command('local')}`; run `llm-do models pull`")
    assert not is_local_available()


def test_the_local_model_is_available_with_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_DO_LOCAL_MODEL", raising=False)
    monkeypatch.setattr(weights, "find_weights", lambda: Path("here"))
    monkeypatch.setattr(catalog, "has_extra", lambda _: True)
    assert is_local_available()


def test_a_custom_server_counts_as_the_local_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_DO_LOCAL_MODEL", "http://localhost:1/v1#m")
    assert is_local_available()
