"""The runs from which the pages about events and results take their examples.

Whatever differs from run to run (ids, times) is replaced, so that a page changes only if its content does.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelUnavailableError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from llm_do import (
    AgentSpec,
    ApprovalDecision,
    ApprovalRequest,
    Event,
    HookPoint,
    LimitError,
    Project,
    RequestReplacement,
    RunResult,
    Runtime,
    run,
)

__all__ = ["events", "results"]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIME = 1767225600.0
"""The time of every event on the pages: the beginning of 2026."""

_ID = re.compile(r"[0-9a-f]{32}")


@cache
def events() -> dict[str, dict[str, Any]]:
    """An event of every type, as JSON data, by its type."""
    found: dict[str, dict[str, Any]] = {}
    for data in asyncio.run(_all()):
        found.setdefault(data["type"], _fixed(data))
    return found


@cache
def results() -> dict[str, dict[str, Any]]:
    """Results of runs of the examples as JSON data, by the example's name; messages of histories are left out."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("calculator", "approvals"):
        with _copy(name) as folder:
            ended = asyncio.run(_result(folder))
        found[name] = _fixed(_without_messages(ended.to_dict()))
    return found


async def _result(folder: Path) -> RunResult:
    stream = Runtime(Project.load(folder), record=False).stream()
    async for _ in stream:
        pass
    assert stream.result is not None
    return stream.result


@contextmanager
def _copy(name: str) -> Iterator[Path]:
    """A temporary copy of an example."""
    ignored = shutil.ignore_patterns("out", "__pycache__", ".llm-do")
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(EXAMPLES / name, Path(folder) / name, ignore=ignored))


async def _all() -> list[dict[str, Any]]:
    """The events of several runs, which together have every type."""
    seen: list[dict[str, Any]] = []
    for name in ("approvals", "support_handoff", "ticket_desk"):
        with _copy(name) as folder:
            stream = Runtime(Project.load(folder), approvals=_answer, record=False).stream()
            seen += [event.to_dict() async for event in stream]
    failing = FunctionModel(stream_function=_fails_once(), model_name="sample")
    spec = AgentSpec("thinker", model=failing, context_providers=[weather], input_guards=[trim], hooks=[HOOK])
    seen += [event.to_dict() async for event in run.stream(spec, " What is 6 times 7? ")]
    looping = FunctionModel(stream_function=_loops, model_name="sample")
    stream = run.stream(AgentSpec("looper", model=looping, tools=[weather]), "Go on.", approvals="approve_all")
    with suppress(LimitError):
        async for event in stream:
            seen.append(event.to_dict())
    return seen + [event.to_dict() async for event in _resumed()]


async def _resumed() -> AsyncIterator[Event]:
    """The events of a run that was stopped after its first response, once it continues."""
    with _copy("approvals") as folder:
        runtime = Runtime(Project.load(folder), approvals=_answer, durable=True)
        runtime.on("model_request", lambda event: runtime.interrupt() if event.request == 2 else None)
        await runtime.execute(run_id="audit-7")
        again = Runtime(Project.load(folder), approvals=_answer, durable=True)
        found: list[Event] = []
        again.on(None, found.append)
        await again.execute_again("audit-7", in_flight="repeat")
        await again.aclose()
        await runtime.aclose()
    for event in found:
        yield event


async def _answer(_: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision("once")


def weather(*_: object) -> str:
    """Fail as if a server were down."""
    raise ConnectionError("the weather service is down")


def trim(text: str) -> str:
    """Remove the blanks around a question, and what follows it."""
    return text.partition("?")[0].strip() + "?"


def exact(**_: object) -> RequestReplacement:
    """Ask for an exact answer."""
    return RequestReplacement(settings={"temperature": 0.0})


HOOK = (HookPoint.PRE_LLM_CALL, exact)


def _fails_once() -> Callable[[list[ModelMessage], AgentInfo], AsyncIterator[Any]]:
    """A model that fails temporarily, then thinks and answers."""
    tries = iter((False, True))

    async def answer(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[Any]:
        if not next(tries):
            raise ModelUnavailableError("sample", "HTTP 503: overloaded", retry_after=0.01)
        yield {0: DeltaThinkingPart(content="Six sevens.")}
        yield "42"

    return answer


async def _loops(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
    """A model that makes the same call again and again."""
    yield {0: DeltaToolCall(name="weather", json_args="{}", tool_call_id=f"call_{len(messages)}")}


def _without_messages(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            key: ["..."] if key == "messages" and value else _without_messages(value) for key, value in data.items()
        }
    return [_without_messages(item) for item in data] if isinstance(data, list) else data


def _fixed(data: dict[str, Any]) -> dict[str, Any]:
    """Replace ids and times with the ones that the pages show."""
    ids: dict[str, str] = {}

    def shown(found: re.Match[str]) -> str:
        return ids.setdefault(found[0], f"{len(ids) + 1:02}")

    fixed = json.loads(_ID.sub(shown, json.dumps(data)))
    for key, value in (("time", TIME), ("duration", 0.013), ("delay", 0.5)):
        if key in fixed:
            fixed[key] = value
    return fixed
