"""Fixtures for the model tests: an environment without keys, and the local model's weights if installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from llm_do.models.builtin import weights
from llm_do.models.providers.model_names import PROVIDERS

VARIABLES = {
    "LLM_DO_MODEL",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *(key for info in PROVIDERS.values() for key in info.keys),
    *(info.base_url for info in PROVIDERS.values() if info.base_url),
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests independent of the environment's API keys."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def local_weights() -> Path:
    """The local model's weights; skips the test if they can't be run."""
    path = weights.find_weights()
    if path is None:
        pytest.skip("the local model's weights are not here: run `llm-do models pull`")
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: run `pip install xllamacpp`")
    return path
