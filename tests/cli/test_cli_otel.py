from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked

pytest.importorskip("opentelemetry.sdk")


SECRET = "sk-otel-0123456789abcdef"


@pytest.mark.parametrize("content", [None, "true"])
def test_spans_have_content_only_if_asked_for_and_never_secrets(
    project: Callable[..., Path], content: str | None
) -> None:
    root = project(f"- tools: [{{name: send, args: {{to: '{SECRET}', text: words-of-a-letter}}}}]\n- text: fin")
    env = {"OTEL_TRACES_EXPORTER": "console", "ACME_API_KEY": SECRET}
    if content is not None:
        env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = content

    ended = run_forked("run", "words-of-a-prompt", "--otel", "--approve-all", "-q", cwd=root, env=env)

    assert ended.code == 0
    assert "gen_ai" in ended.err
    assert SECRET not in ended.err
    for words in ("words-of-a-prompt", "words-of-a-letter"):
        assert (words in ended.err) is (content is not None)


def test_spans_go_to_the_exporter_named_in_the_environment(project: Callable[..., Path]) -> None:
    root = project("- tools: [{name: send, args: {to: ann}}]\n- text: 'result: {tool}'")

    ended = run_forked("run", "x", "--otel", "--approve-all", cwd=root, env={"OTEL_TRACES_EXPORTER": "console"})

    assert (ended.code, ended.out) == (0, "result: sent to ann\n")
    decoder, spans, rest = json.JSONDecoder(), [], ended.err
    while "{" in rest:
        span, end = decoder.raw_decode(rest, rest.index("{"))
        spans.append(span)
        rest = rest[end:]
    names = [span["name"] for span in spans]
    assert any(name.startswith("chat ") for name in names)
    assert any("send" in name for name in names)
    assert len({span["context"]["trace_id"] for span in spans}) == 1


def test_an_unknown_exporter_is_a_usage_error(project: Callable[..., Path]) -> None:
    ended = run_forked("run", "x", "--otel", cwd=project(), env={"OTEL_TRACES_EXPORTER": "carrier-pigeon"})

    assert ended.code == 2
    assert ended.err == (
        "error: OTEL_TRACES_EXPORTER names 'carrier-pigeon'. Use otlp, console or none, separated by commas.\n"
    )


def test_an_empty_exporter_setting_means_the_default(project: Callable[..., Path]) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

    ended = run_forked("run", "x", "--otel", "--dry-run", cwd=project(), env={"OTEL_TRACES_EXPORTER": ""})

    assert (ended.code, ended.err) == (0, "")
