from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked

pytest.importorskip("opentelemetry.sdk")


SECRET = "sk-otel-0123456789abcdef"


@pytest.mark.parametrize("kept_in", ["the environment", "a file of the project"])
@pytest.mark.parametrize("content", [None, "true"])
def test_spans_have_content_only_if_asked_for_and_never_secrets(
    project: Callable[..., Path], content: str | None, kept_in: str
) -> None:
    root = project(f"- tools: [{{name: send, args: {{to: '{SECRET}', text: words-of-a-letter}}}}]\n- text: fin")
    env = {"OTEL_TRACES_EXPORTER": "console"}
    if kept_in == "the environment":
        env["ACME_API_KEY"] = SECRET
    else:
        (root / ".env").write_text(f"ACME_API_KEY={SECRET}\n")
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


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "max_queue_size must be a positive integer"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "must be a non-negative integer but got many"),
        ("OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER", "odd", "Requested component 'odd' not found"),
    ],
)
def test_a_setting_that_opentelemetry_refuses_is_a_usage_error(
    project: Callable[..., Path], name: str, value: str, why: str
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

    ended = run_forked("run", "x", "--otel", cwd=project(), env={name: value})

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: OpenTelemetry can't be set up: ")
    assert why in ended.err
    assert ended.err.endswith("Correct the OTEL_* variables of the environment.\n")


def test_an_empty_exporter_setting_means_the_default(project: Callable[..., Path]) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

    ended = run_forked("run", "x", "--otel", "--dry-run", cwd=project(), env={"OTEL_TRACES_EXPORTER": ""})

    assert (ended.code, ended.err) == (0, "")


def test_a_project_does_not_say_where_spans_go(project: Callable[..., Path]) -> None:
    root = project()
    with socket.create_server(("127.0.0.1", 0)) as theirs:
        address = f"http://127.0.0.1:{theirs.getsockname()[1]}"
        (root / ".env").write_text(
            f"OTEL_EXPORTER_OTLP_ENDPOINT={address}\nOTEL_TRACES_EXPORTER=otlp\nHTTP_PROXY={address}\n"
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true\n"
        )

        ended = run_forked("run", "words-of-a-prompt", "--otel", cwd=root, env={"OTEL_TRACES_EXPORTER": "console"})

        assert ended.code == 0
        assert "gen_ai" in ended.err
        assert "words-of-a-prompt" not in ended.err
        theirs.settimeout(0)
        with pytest.raises(BlockingIOError):
            theirs.accept()


@pytest.mark.parametrize(
    "answer",
    [b"", b"\x1b]0;mine\x07\r\n\r\n", b"HTTP/1.1 401 \x1b[31mNo\r\n\r\n" + b"\x1b[31mmine" * 100_000],
    ids=["none", "garbage", "too much"],
)
def test_an_endpoint_that_fails_changes_neither_the_result_nor_the_exit_code(
    project: Callable[..., Path], answer: bytes
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer, args=(server, answer), daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        ended = run_forked("run", "x", "--otel", "-q", cwd=project(), env=env)

        assert (ended.code, ended.out) == (0, "answer to x\n")
        assert "Failed to export" in ended.err
        assert len(ended.err) < 2000
        assert "\x1b" not in ended.err
        assert "mine" not in ended.err


def _answer(server: socket.socket, answer: bytes) -> None:
    """Answer every request in the same way, until the server is closed."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65_536)
                connection.sendall(answer)
