"""A provider can make a run wait, but not indefinitely."""

from __future__ import annotations

import time

import pytest

from llm_do import ProviderError, Runtime
from tests.support.openai_server import serve
from tests.support.runs import agent, carry_out, heard, project_of


@pytest.mark.parametrize("status", [429, 503])
def test_a_provider_that_asks_to_wait_for_days_has_failed(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with serve({"m": [{"status": status, "times": 9, "retry_after": 999_999}]}) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        runtime = Runtime(project_of([agent("main", "openai-chat:m")]), approvals="approve_all")
        ear = heard(runtime)
        begun = time.monotonic()
        result = carry_out(runtime)
    assert time.monotonic() - begun < 30
    assert isinstance(result.error, ProviderError)
    assert result.error.status_code == status
    assert len(log) == 1
    assert ear.of("retry") == []
