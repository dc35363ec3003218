"""Agents as models: by OpenAI's own client, and by our own model of the same protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import Project, Runtime
from llm_do.runtime.record.events.model_events import RetryEvent, TextDoneEvent, TextEvent
from llm_do.web.chat_completions import _SentText
from tests.support.tables import each_row
from tests.web.served import KEY, Served, serving, write_desk

openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving([write_desk(tmp_path_factory.mktemp("models") / "desk")]) as found:
        yield found


@pytest.fixture(scope="module")
def client(desk: Served) -> Iterator[Any]:
    import httpx

    with openai.OpenAI(
        base_url=f"{desk.url}/v1", api_key=KEY, max_retries=0, http_client=httpx.Client(trust_env=False)
    ) as found:
        yield found


def ask(client: Any, model: str, *texts: str, **more: Any) -> Any:
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return client.chat.completions.create(model=model, messages=messages, **more)


def test_agents_are_listed_as_models(client: Any) -> None:
    assert {"clerk", "shop", "asker"} <= {model.id for model in client.models.list()}


def test_an_answer_has_the_output_and_the_usage(client: Any, desk: Served) -> None:
    answer = ask(client, "shop", "What is tea?")

    assert answer.choices[0].message.content == "Tea is 4.20."
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    run = desk.http.get(f"/api/runs/{answer.id.removeprefix('chatcmpl-')}").json()
    assert run["run"]["entry"] == "shop"


def test_a_conversation_is_continued(client: Any) -> None:
    answer = ask(client, "shop", "What is tea?", "Tea is 4.20.", "And coffee?")

    assert answer.choices[0].message.content == "Coffee is 5.00."


def test_an_answer_is_streamed_with_its_usage(client: Any) -> None:
    chunks = list(ask(client, "shop", "What is tea?", stream=True, stream_options={"include_usage": True}))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]

    assert "".join(piece or "" for piece in pieces) == "Tea is 4.20."
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens > 0
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


@pytest.mark.parametrize("stream", [True, False])
def test_tools_are_invisible_and_one_that_needs_approval_is_denied(client: Any, stream: bool) -> None:
    answer = ask(client, "clerk", "Write to ann.", stream=stream)
    text = (
        "".join((chunk.choices[0].delta.content or "") for chunk in answer)
        if stream
        else answer.choices[0].message.content
    )

    assert text.startswith("The letter: send is denied: no")


CALLS = {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": "f", "arguments": "{}"}} for i in "ab"]}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "done"}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "none", "messages": [{"role": "user", "content": "x"}]}, 404, "there is no model 'none'"),
        ({"model": "shop"}, 400, "`messages` has to be a list"),
        ({"model": "shop", "messages": []}, 400, "the last message has to be the user's"),
        ({"model": "shop", "messages": [{"role": "assistant", "content": "x"}]}, 400, "the last message"),
        ({"model": "shop", "messages": [{"role": "user", "content": 7}]}, 400, "content has to be text"),
        ({"model": "shop", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "has to be text"),
        ({"model": "shop", "messages": [{"role": "user", "content": None}]}, 400, "has to be text"),
        ({"messages": [{"role": "user", "content": "x"}]}, 400, "`model` has to be a text"),
        ({"model": "shop", "messages": [{"role": "user", "content": "x"}], "n": 2}, 400, "`n` has to be 1"),
        ({"model": "shop", "messages": [{"role": "user", "content": "x"}], "tools": [{}]}, 400, "doesn't take 'tools'"),
        ({"model": "shop", "messages": [{"role": "odd", "content": "x"}, {"role": "user", "content": "x"}]}, 400, ""),
        ({"model": "shop", "messages": [{"role": "user", "content": "x"}], "stream": "yes"}, 400, "`stream`"),
        ({"model": "shop", "messages": [CALLS, RESULT, {"role": "user", "content": "x"}]}, 400, "missing: 'b'; add a"),
    ],
)
def test_what_an_agent_cannot_do_is_refused(desk: Served, body: Any, status: int, message: str) -> None:
    answer = desk.http.post("/v1/chat/completions", json=body)

    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


def test_a_history_with_calls_and_all_their_results_is_continued(desk: Served) -> None:
    messages = [CALLS, RESULT, {**RESULT, "tool_call_id": "b"}, {"role": "user", "content": "Hello"}]
    answer = desk.http.post("/v1/chat/completions", json={"model": "shop", "messages": messages})
    assert answer.status_code == 200, answer.text


def test_text_parts_are_joined(desk: Served) -> None:
    content = [{"type": "text", "text": "What is"}, {"type": "text", "text": "tea?"}]
    body = {"model": "shop", "messages": [{"role": "user", "content": content}]}

    assert desk.http.post("/v1/chat/completions", json=body).status_code == 200


def test_our_own_model_asks_an_agent(desk: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{desk.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "main.agent").write_text("---\nname: main\nmodel: openai-chat:shop\n---\nAsk the shop.\n")

    assert Runtime(Project.load(tmp_path)).run_sync("What is tea?").output == "Tea is 4.20."


def test_a_failed_run_is_an_error_of_the_stream(client: Any, desk: Served) -> None:
    with pytest.raises(openai.APIError, match="script"):
        list(ask(client, "shop", "a", "b", "c", "d", "e", stream=True))
    with pytest.raises(openai.InternalServerError):
        ask(client, "shop", "a", "b", "c", "d", "e")


BASE: dict[str, Any] = {"seq": 0, "time": 0.0, "run_id": "r", "call_id": "c", "parent_call_id": None} | {
    "agent_name": "main", "path": "main", "depth": 1,
}  # fmt: skip


def sent(*steps: str | None, output: str) -> str:
    """What a client gets: texts, `None` for a retry, and `.` for the end of a response."""
    text, found = _SentText(), ""
    for step in steps:
        if step is None:
            event: Any = RetryEvent(**BASE, attempt=1, delay=0.0, error="cut")
        elif step == ".":
            event = TextDoneEvent(**BASE, text="")
        else:
            event = TextEvent(**BASE, text=step)
        found += text.take(event, "main")
    return found + text.rest(output)


@pytest.mark.parametrize(
    ("steps", "output", "expected"),
    [
        (("Tea ", "is.", "."), "Tea is.", "Tea is."),
        (("Tea ", None, "Tea ", "is.", "."), "Tea is.", "Tea is."),
        (("Tea ", None, "Te", "a", " is.", "."), "Tea is.", "Tea is."),
        (("Tea ", None, "No.", "."), "No.", "Tea \n\nNo."),
        (("Let me see.", ".", "Tea."), "Tea.", "Let me see.\n\nTea."),
        ((), '{"a": 1}', '{"a": 1}'),
        (("Working.", "."), '{"a": 1}', 'Working.\n\n{"a": 1}'),
    ],
)
def test_text_that_comes_again_after_a_retry_is_sent_once(steps: Any, output: str, expected: str) -> None:
    assert sent(*steps, output=output) == expected
    assert json.dumps(expected)


@each_row("streams", [False, True])
def test_an_error_names_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: bool) -> None:
    monkeypatch.setenv("ACME_API_KEY", "tr0ub4dor-and-more")
    root = write_desk(tmp_path / "desk")
    (root / "tools.py").write_text(_FAILING, encoding="utf-8")
    (root / "project.json").write_text(
        """{"version": 1, "name": "desk", "entry": {"function": "tools.py:fail"}, "allow_cli_input": true,
 "agent_files": ["shop.agent"], "python_files": ["tools.py"], "model": "script:answers.yaml"}""",
        encoding="utf-8",
    )
    with serving([root]) as found:
        body = {"model": "fail", "stream": streams, "messages": [{"role": "user", "content": "go"}]}
        answer = found.http.post("/v1/chat/completions", json=body)

    assert "no login with [redacted ACME_API_KEY]" in answer.text
    assert "tr0ub4dor" not in answer.text


_FAILING = """import os


def fail(input, ctx):
    raise ValueError("no login with " + os.environ["ACME_API_KEY"])
"""
