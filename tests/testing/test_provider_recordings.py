"""Whatever a provider's client makes of an answer is recorded and replayed, whole or streamed, in either order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from llm_do import AgentSpec, LlmDoError, Project, Runtime, RuntimeConfig
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from tests.models import odd_chat_answers, odd_messages, odd_responses
from tests.models.odd_chat_answers import Row
from tests.support.no_network import no_network
from tests.support.raw_server import serve_raw
from tests.support.runs import project_of
from tests.support.thinking_answers import ROWS as THINKING

TABLES: Mapping[str, Mapping[str, Row]] = {
    "openai-chat": odd_chat_answers.ROWS,
    "openai": odd_responses.ROWS,
    "anthropic": odd_messages.ROWS,
}
ODD = {f"{prefix} {name}": (prefix, row) for prefix, rows in TABLES.items() for name, row in rows.items()}
ROWS: Mapping[str, tuple[str, Row]] = {**ODD, **THINKING}

FALL_BACK: Mapping[str, tuple[str, ...]] = {
    "overloaded, then another provider": ("anthropic:anthropic HTTP 529", "openai:openai an ordinary answer"),
    "a page, then the same provider": (
        "openai-chat:openai-chat HTTP 500, a page",
        "openai-chat:openai-chat a null call id",
    ),
    "none can": ("openai:openai HTTP 200, error", "anthropic:anthropic a cut stream"),
}
"""Lists of models, of which the first fails."""

OFTEN = (
    "openai-chat a null call id",
    "openai-chat arguments that aren't JSON",
    "openai-chat absent usage",
    "openai-chat a complete tag in the middle",
    "openai-chat a cut stream",
    "openai refusal",
    "openai null output",
    "anthropic refused half-way",
    "anthropic HTTP 529",
    *THINKING,
    *FALL_BACK,
)
"""What is replayed whenever the tests run; all of it is where slow tests do."""

AGENTS = {name: f"a{number}" for number, name in enumerate([*ROWS, *FALL_BACK])}

MOVING = frozenset((
    "call_id", "conversation_id", "duration", "parent_call_id", "provider_response_id", "provider_url", "run_id", "seq",
    "time", "timestamp",
))  # fmt: skip
"""What differs between any two runs."""


WORDS = {False: "whole", True: "streamed"}


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ping() -> str:
    """Ping."""
    return "pong"


@dataclass(frozen=True)
class Took:
    """What a run did, as data without clocks and ids."""

    result: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    text: str

    @property
    def without_partial(self) -> Mapping[str, Any]:
        """The result as a run that isn't streamed has it: without the text of a stream that broke off."""
        failed = self.result["status"] != "completed"
        return {name: value for name, value in self.result.items() if name != "output" or not failed}


def in_order(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events, with results that follow each other in the order of their calls: which tool ends first is chance."""
    found: list[Mapping[str, Any]] = []
    for is_result, group in groupby(events, lambda event: event["type"] == "tool_result"):
        together = list(group)
        found += sorted(together, key=lambda event: str(event["tool_name"])) if is_result else together
    return found


def settled(data: Any, ids: dict[str, str]) -> Any:
    """Data without what differs between any two runs; what a provider made up is numbered as it occurs."""
    if isinstance(data, list):
        return [settled(each, ids) for each in data]
    if not isinstance(data, dict):
        return data
    found: dict[str, Any] = {}
    for name, value in data.items():
        if name in MOVING or value is None or (name == "id" and any(char.isdigit() for char in value)):
            continue
        numbered = name in ("tool_call_id", "signature") and value
        found[name] = ids.setdefault(value, f"{name} {len(ids)}") if numbered else settled(value, ids)
    if str(found.get("model_id", "")).startswith("fallback:"):
        del found["model_id"]  # a list's name, which PydanticAI puts together from those of its models' classes
    return found


def project(root: Path) -> Project:
    models: dict[str, Any] = {name: f"{prefix}:{name}" for name, (prefix, _) in ROWS.items()} | {**FALL_BACK}
    specs = [AgentSpec(AGENTS[name], model=model, tools=[add, ping]) for name, model in models.items()]
    return project_of(specs, root=root, max_retries=1)


def take(linked: Project, transport: Any, names: Collection[str], *, stream: bool) -> dict[str, Took]:
    """Run the named rows once, in one session."""

    async def one(runtime: Runtime, name: str) -> Took:
        events: list[Any] = []
        if stream:
            running = runtime.stream("go", entry=AGENTS[name])
            with suppress(LlmDoError):
                async for event in running:
                    events.append(event)  # noqa: PERF401 (what came before an error counts, too)
            result = running.result
        else:
            off = runtime.on(None, events.append)
            result = await runtime.execute("go", entry=AGENTS[name])
            off()
        assert result is not None
        return Took(
            settled(json.loads(json.dumps(result.to_dict())), {}),
            [settled(each.to_dict(), {}) for each in events if each.type != "text"],
            "".join(each.text for each in events if each.type == "text"),
        )

    async def every() -> dict[str, Took]:
        config = RuntimeConfig.of(linked, approvals="approve_all", retry_delay=0.0, transport=transport)
        runtime = Runtime(linked, config=config)
        try:
            return {name: await one(runtime, name) for name in names}
        finally:
            await runtime.aclose()

    return asyncio.run(every())


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_raw({name: row.answers for name, (_, row) in ROWS.items()}) as (url, _):
        yield url


def check(root: Path, url: str, names: Collection[str]) -> None:
    """Record the rows whole and streamed, and replay each recording whole and streamed."""
    linked = project(root)
    live: dict[bool, dict[str, Took]] = {}
    for streamed in (False, True):
        recorder = recorder_for(linked)
        with pytest.MonkeyPatch.context() as environ:
            for prefix, address in {"OPENAI": f"{url}/v1", "ANTHROPIC": url}.items():
                environ.setenv(f"{prefix}_API_KEY", "sk-test-0123456789")
                environ.setenv(f"{prefix}_BASE_URL", address)
            live[streamed] = take(linked, recorder, names, stream=streamed)
        write_cassette(root / f"{streamed}.json", recorder.cassette())
        check_text((root / f"{streamed}.json").read_text(), url)
    for recorded in (False, True):
        for streamed in (False, True):
            player = player_of(root / f"{recorded}.json", linked, again="again")
            with no_network():
                again = take(linked, player, names, stream=streamed)
            assert player.unused == []
            for name in names:
                was, now = live[recorded][name], again[name]
                case = f"{name}, recorded {WORDS[recorded]}, replayed {WORDS[streamed]}"
                if recorded == streamed:
                    assert now.result == was.result, case
                    assert now.text == was.text, case
                else:
                    assert now.without_partial == was.without_partial, case
                assert in_order(now.events) == in_order(was.events), case


def check_text(text: str, url: str) -> None:
    """Nothing that a provider or a machine makes up is in a cassette."""
    for word in (
        url,
        "127.0.0.1",
        "sk-test",
        "resp_1",
        "msg_1",
        "fc_1",
        "toolu_1",
        "rs_01",
        "EqQB",
        "gAAAA",
        "1700000000",
    ):
        assert word not in text.replace("chatcmpl", ""), word


@pytest.mark.slow
def test_common_answers_are_replayed_as_they_were(tmp_path: Path, server: str) -> None:
    check(tmp_path, server, OFTEN)


@pytest.mark.slow
def test_every_odd_answer_is_replayed_as_it_was(tmp_path: Path, server: str) -> None:
    check(tmp_path, server, list(AGENTS))
