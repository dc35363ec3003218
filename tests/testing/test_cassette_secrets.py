"""Secrets planted everywhere are nowhere in a cassette, and a replay with other secrets finds its recordings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import ToolReturn
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart

from llm_do import Project, RunResult, Runtime, ToolError
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script

SECRETS = {
    "ACME_API_KEY": "sk-acme-0123456789abcdef",
    "QUOTED_TOKEN": 'to"ken\\with\\marks-and-"quotes"',
    "UNICODE_SECRET": "geheimnis-üñï-çøðé",
    "SIGNING_KEY": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASC\n-----END PRIVATE KEY-----\n",
    "DATABASE_URL": "postgres://desk:tr0ub4dor-and-3@db.example/main",
}
OTHERS = {
    "ACME_API_KEY": "sk-other-fedcba9876543210",
    "QUOTED_TOKEN": 'ano"ther\\token-of-another-length',
    "UNICODE_SECRET": "ein-anderes-ßecret",
    "SIGNING_KEY": "-----BEGIN PRIVATE KEY-----\nABCDEFGHIJKLMNOPQRSTUVWX\n-----END PRIVATE KEY-----\n",
    "DATABASE_URL": "postgres://desk:another-pass-word@db.example/main",
}
BEARER = "Authorization: Bearer abcdefgh.12345678"


def planted() -> str:
    """All of them, as they are now, in one text."""
    return " | ".join(os.environ[name] for name in SECRETS) + f" | {BEARER}"


def text(place: str) -> str:
    """Return them as text."""
    return planted()


def data(place: str) -> dict[str, Any]:
    """Return them as data, and as JSON inside a text."""
    values = {name: os.environ[name] for name in SECRETS}
    return {"values": values, "text": json.dumps(values), "twice": json.dumps(json.dumps(values))}


def content(place: str) -> ToolReturn:
    """Return them beside a result."""
    return ToolReturn("see below", content=[planted()])


def fails(place: str) -> str:
    """Fail with them."""
    raise ToolError(f"refused {planted()}", hint=f"try {os.environ['ACME_API_KEY']}")


def crashes(place: str) -> str:
    """Crash with them."""
    raise RuntimeError(planted())


TOOLS = [text, data, content, fails, crashes]


def project(root: Path) -> Project:
    refused = ModelHTTPError(503, "m", {"error": {"message": f"overloaded, {planted()}"}})
    calls = [call(each.__name__, {"place": planted()}, each.__name__) for each in TOOLS]
    raw = call("text", json.dumps({"place": planted()}), "raw")
    said = ModelResponse([ThinkingPart(planted()), TextPart(f"You said {planted()}")])
    turns = iter([[*calls, raw], said])
    model = script(refused, lambda messages, info: next(turns))
    settings = {
        "extra_headers": {"X-Key": os.environ["ACME_API_KEY"]},
        "extra_body": {"key": os.environ["ACME_API_KEY"]},
    }
    instructions = f"Be brief. {planted()}"
    spec = agent("main", model, tools=TOOLS, instructions=instructions, model_settings=settings)
    return project_of([spec], root=root, max_retries=1)


def run(linked: Project, transport: Any, *, stream: bool) -> RunResult:
    runtime = Runtime(linked, approvals="approve_all", transport=transport)
    if stream:
        runtime.on("text", lambda event: None)
    return carry_out(runtime, f"My keys are {planted()}")


def pieces(secret: str) -> list[str]:
    """What must not be found of a secret: each of its longer words, however the rest is escaped."""
    words = secret.replace("\\", "\n").replace('"', "\n").split("\n")
    return [word for word in words if len(word) >= 8 and "PRIVATE KEY" not in word]


@pytest.mark.sample(2)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tools", [[], ["*"]], ids=["requests", "tools"])
def test_no_secret_is_in_a_cassette_and_others_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: list[str], stream: bool
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    linked = project(tmp_path)
    recorder = recorder_for(linked, tools=tools)
    was = run(linked, recorder, stream=stream)
    assert was.status == "completed", was.error
    path = tmp_path / "c.json"
    write_cassette(path, recorder.cassette())

    written = path.read_text()
    for secret in (*SECRETS.values(), "abcdefgh.12345678"):
        for piece in pieces(secret if "://" not in secret else "tr0ub4dor-and-3"):
            assert piece not in written, piece
            assert json.dumps(piece)[1:-1] not in written, piece

    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    linked = project(tmp_path)
    player = player_of(path, linked, again="again", tools=tools)
    now = run(linked, player, stream=stream)
    assert now.status == "completed", (now.error, getattr(now.error, "block", None))
    assert player.unused == []
