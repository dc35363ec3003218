"""Trees of calls over the providers' own clients: forty recordings that replay without a network, in any order."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, LlmDoError, Project, RunResult, Runtime, RuntimeConfig
from llm_do.runtime.record.transport import Transport
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.player import CassettePlayer
from llm_do.testing.cassettes.recorder import write_cassette
from tests.models import odd_chat_answers, odd_messages, odd_responses
from tests.support.no_network import no_network
from tests.support.openai_server import serve
from tests.support.raw_server import Answer, serve_raw
from tests.support.runs import project_of

Calls = Sequence[tuple[str, dict[str, Any]]]


def chat(calls: Calls) -> Answer:
    made = [odd_chat_answers.call(f"c{at}", name, _json(args)) for at, (name, args) in enumerate(calls)]
    return odd_chat_answers.calls(made)


def responses(calls: Calls) -> Answer:
    made = [
        {**odd_responses.call(name, _json(args), f"call_{at}"), "id": f"fc_{at}"}
        for at, (name, args) in enumerate(calls)
    ]
    return odd_responses.answer(*made)


def messages(calls: Calls) -> Answer:
    made = [odd_messages.call(name, args, f"toolu_{at}") for at, (name, args) in enumerate(calls)]
    return odd_messages.answer(*made, stop="tool_use")


def _json(args: dict[str, Any]) -> str:
    return json.dumps(args)


PROTOCOLS: dict[str, tuple[Callable[[Calls], Answer], Answer]] = {
    "openai-chat": (chat, odd_chat_answers.YES),
    "openai": (responses, odd_responses.YES),
    "anthropic": (messages, odd_messages.YES),
}

SHAPES: dict[str, dict[str, Calls]] = {
    "nested": {"lead": [("middle", {"input": "a"})], "middle": [("leaf", {"input": "b"})]},
    "parallel": {"lead": [("leaf", {"input": text}) for text in "abcd"]},
    "alike": {"lead": [("leaf", {"input": "same"})] * 3},
    "wide and deep": {
        "lead": [("middle", {"input": "a"}), ("add", {"a": 1, "b": 2}), ("middle", {"input": "b"})],
        "middle": [("leaf", {"input": "c"}), ("leaf", {"input": "d"}), ("add", {"a": 3, "b": 4})],
    },
}


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def tree(root: Path, model: Callable[[str], Any]) -> Project:
    """Three agents, of which each may call those below it."""
    return project_of(
        [
            AgentSpec("lead", model=model("lead"), tools=[add], toolsets=["middle", "leaf"]),
            AgentSpec("middle", model=model("middle"), tools=[add], toolsets=["leaf"], description="Middle."),
            AgentSpec("leaf", model=model("leaf"), description="Leaf."),
        ],
        root=root,
        max_retries=3,
    )


class Shuffled(Transport):
    """Carries requests in an order of its own."""

    def __init__(self, player: CassettePlayer, seed: int) -> None:
        self.player = player
        self.random = random.Random(seed)

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Any:
        return self.player.stand_in(agent, named)

    async def send(self, place: Any, request: Any, ask: Any, show: Any) -> Any:
        for _ in range(self.random.randrange(8)):
            await asyncio.sleep(0)
        answer = await self.player.send(place, request, ask, show)
        for _ in range(self.random.randrange(8)):
            await asyncio.sleep(0)
        return answer


def run(linked: Project, transport: Any, *, stream: bool) -> tuple[RunResult, str]:
    async def once() -> tuple[RunResult, str]:
        config = RuntimeConfig.of(linked, approvals="approve_all", retry_delay=0.0, transport=transport)
        runtime, texts = Runtime(linked, config=config), list[str]()
        try:
            if not stream:
                return await runtime.execute("go"), ""
            running = runtime.stream("go")
            with suppress(LlmDoError):
                async for event in running:
                    texts += [event.text] if event.type == "text" and event.depth == 1 else []
            assert running.result is not None
            return running.result, "".join(texts)
        finally:
            await runtime.aclose()

    return asyncio.run(once())


def shown(result: RunResult) -> Any:
    calls = sorted((call.path, call.status, call.steps, call.usage.total_tokens) for call in result.calls)
    return result.status, result.output, result.usage, result.steps, calls, [each.message for each in result.errors]


def check(linked: Project, path: Path, environ: dict[str, str], *, stream: bool) -> None:
    recorder = recorder_for(linked)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        was, text = run(linked, recorder, stream=stream)
    assert was.status == "completed", was.error
    write_cassette(path, recorder.cassette())
    with no_network():
        for seed in range(3):
            player = player_of(path, linked, again="again")
            now, again = run(linked, Shuffled(player, seed), stream=stream)
            assert shown(now) == shown(was)
            assert again == text
            assert player.unused == []


@dataclass(frozen=True)
class Case:
    """One recording: of a shape, over a protocol or a list of two; `times` says how often a provider is busy."""

    shape: str
    protocol: str
    stream: bool
    next: str = ""
    times: int = 0

    @property
    def name(self) -> str:
        words = [self.shape, self.protocol, self.next, f"busy {self.times}" if self.times else ""]
        return ", ".join([*filter(None, words), "streamed" if self.stream else "whole"])


CASES = [
    *(Case(shape, protocol, stream) for shape in SHAPES for protocol in PROTOCOLS for stream in (False, True)),
    *(Case(shape, "openai-chat", stream, times=n) for shape in SHAPES for stream in (False, True) for n in (1,)),
    *(
        Case(shape, protocol, stream, next=other)
        for shape in ("nested", "wide and deep")
        for protocol, other in (("openai", "anthropic"), ("anthropic", "openai-chat"))
        for stream in (False, True)
    ),
]
OFTEN = ("wide and deep, anthropic, streamed", "alike, openai, whole", "parallel, openai-chat, busy 1, streamed")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    answers: dict[str, list[Answer]] = {}
    for protocol, (make, yes) in PROTOCOLS.items():
        for shape, agents in SHAPES.items():
            for name in ("lead", "middle", "leaf"):
                answers[f"{protocol} {shape} {name}"] = [make(agents[name]), yes] if name in agents else [yes]
    answers["busy"] = [odd_chat_answers.both({"error": {"message": "busy"}}, 529)]
    with serve_raw(answers) as (url, _):
        yield url


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=() if c.name in OFTEN else pytest.mark.slow) for c in CASES]
)
def test_a_tree_of_calls_replays_without_a_network_in_any_order(tmp_path: Path, server: str, case: Case) -> None:
    environ = {"OPENAI_API_KEY": "sk-test-0123456789", "ANTHROPIC_API_KEY": "sk-test-0123456789"}
    path = tmp_path / "c.json"
    if case.times:
        agents = SHAPES[case.shape]
        scripts: dict[str, list[dict[str, Any]]] = {
            name: [
                {"status": 429, "times": case.times, "retry_after": 0},
                *([{"tools": [{"name": tool, "args": args} for tool, args in agents[name]]}] if name in agents else []),
                {"text": f"{name} is done", "delay": 0.002},
            ]
            for name in ("lead", "middle", "leaf")
        }
        with serve(scripts) as (url, _):
            linked = tree(tmp_path, lambda name: f"openai-chat:{name}")
            check(linked, path, {**environ, "OPENAI_BASE_URL": url}, stream=case.stream)
        return

    def model(name: str) -> str | list[str]:
        own = f"{case.next or case.protocol}:{case.next or case.protocol} {case.shape} {name}"
        return [f"{case.protocol}:busy", own] if case.next else own

    environ |= {"OPENAI_BASE_URL": f"{server}/v1", "ANTHROPIC_BASE_URL": server}
    check(tree(tmp_path, model), path, environ, stream=case.stream)


def test_there_are_forty_recordings() -> None:
    assert len({case.name for case in CASES}) == 40
