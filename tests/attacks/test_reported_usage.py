"""Token counts and costs that no request can have: providers and custom models may report anything."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from llm_do import BudgetError, Runtime
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads import SqliteStore
from tests.support.runs import agent, carry_out, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.web_server import Page, serve_pages

IMPOSSIBLE = [2**63, 10**400, -1, -(10**30)]


def reporting(read: Any, written: Any = 1, **more: Any) -> ModelResponse:
    return ModelResponse([TextPart("Done.")], usage=RequestUsage(input_tokens=read, output_tokens=written, **more))


@pytest.mark.parametrize("count", IMPOSSIBLE, ids=repr)
@pytest.mark.parametrize("where", ["read", "written"])
def test_an_impossible_count_is_treated_as_unreported(tmp_path: Path, count: Any, where: str) -> None:
    response = reporting(count) if where == "read" else reporting(1, count)
    runtime = runtime_of([agent("main", script(response))], root=tmp_path, options={"record": True})

    result = carry_out(runtime)

    assert (result.status, result.output) == ("completed", "Done."), result.errors
    assert 0 < result.usage.input_tokens < 10_000  # estimated
    assert 0 < result.usage.output_tokens < 10_000
    stored = SqliteStore(tmp_path / ".llm-do" / "state.db")
    (run,) = asyncio.run(listed(stored))
    assert (run.status, run.usage) == ("completed", result.usage)


async def listed(store: SqliteStore) -> list[RunRecord]:
    try:
        return await store.runs()
    finally:
        await store.aclose()


def test_a_negative_count_does_not_enlarge_a_budget() -> None:
    def again(number: int) -> str:
        """Do it again."""
        return "again"

    def answer(messages: list[ModelMessage], info: object) -> ModelResponse:
        parts = [TextPart("word " * 100), call("again", number=len(messages))]
        return ModelResponse(parts, usage=RequestUsage(input_tokens=-1_000_000, output_tokens=-1_000_000))

    model = FunctionModel(answer)
    result = carry_out(runtime_of([agent("main", model, tools=[again])], budget={"total_tokens": 2_000}, max_steps=100))

    assert isinstance(result.error, BudgetError), result.error
    assert result.usage.requests < 30


@pytest.mark.parametrize("cost", ["-1000", "NaN", "Infinity", "-Infinity"])
def test_an_impossible_cost_is_unknown(cost: str) -> None:
    usage = RequestUsage(input_tokens=1, output_tokens=1, cost=Decimal(cost))

    def again() -> str:
        """Do it again."""
        return "again"

    model = FunctionModel(lambda messages, info: ModelResponse([call("again")], usage=usage, model_name="theirs"))
    result = carry_out(runtime_of([agent("main", model, tools=[again])], max_steps=3))

    assert result.usage.cost_usd is None
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("count", ["1e19", "9" * 30, "1e400", "NaN", "-5", '"many"', "[]"])
def test_a_server_that_reports_impossible_counts_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    """The run is recorded, which needs numbers that a database holds."""
    answer = (
        '{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,'
        ' "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],'
        f' "usage": {{"prompt_tokens": {count}, "completion_tokens": 1, "total_tokens": 2}}}}'
    )
    with serve_pages({"/v1/chat/completions": Page(answer.encode(), kind="application/json")}) as site:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{site.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        project = project_of([agent("main", "openai-chat:m")], root=tmp_path)
        result = carry_out(Runtime(project, record=True))

    assert (result.status, result.output) == ("completed", "Done."), result.errors
    assert 0 < result.usage.input_tokens < 10_000
