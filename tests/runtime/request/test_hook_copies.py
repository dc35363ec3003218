"""Hooks get copies: only what they return changes what is sent, and it is recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from llm_do import HookError, HookPoint, RequestReplacement, RunResult, Runtime, RuntimeConfig
from llm_do.models import message_copies
from llm_do.models.message_copies import copy_data, is_unchanged, take_snapshot
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

STEPS = 60


def look(at: int) -> dict[str, Any]:
    """Look at a tree."""
    return {"tree": at, "birds": ["owl"]}


def long_run(*hooks: Callable[..., Any], steps: int = STEPS) -> tuple[RunResult, list[Any]]:
    """Run an agent that calls a tool in each step, with hooks before its requests; returns what the model was sent."""
    sent: list[Any] = []

    def answer(messages: list[Any], _: Any) -> Any:
        sent.append(messages)
        return "seen" if len(sent) == steps else call("look", at=len(sent))

    declared = [(HookPoint.PRE_LLM_CALL, hook) for hook in hooks]
    main = agent("main", script(answer), tools=[look], hooks=declared, max_steps=steps)
    return carry_out(runtime_of([main], approvals="approve_all")), sent


def in_prompt(agent: Any, messages: list[Any]) -> None:
    messages[0].parts[-1].content = "forged"


def in_instructions(agent: Any, messages: list[Any]) -> list[Any]:
    messages[-1].instructions = "forged"
    return messages


def in_data(agent: Any, messages: list[Any]) -> RequestReplacement | None:
    if len(messages) < 3:
        return None
    messages[2].parts[0].content["birds"].append("forged")
    return RequestReplacement(messages=messages, settings={"temperature": 0.5})


def in_parts(agent: Any, messages: list[Any]) -> list[Any]:
    messages[-1].parts.append(UserPromptPart("forged"))
    return [*messages]


def in_list(agent: Any, messages: list[Any]) -> None:
    messages.append(ModelRequest([UserPromptPart("forged")]))


@each_row(
    "hook, fault",
    [
        (in_prompt, "changed message 1 of 1 in place"),
        (in_instructions, "changed message 1 of 1 in place"),
        (in_data, "changed message 3 of 3 in place"),
        (in_parts, "changed message 1 of 1 in place"),
        (in_list, "returned None, but changed the list of messages in place"),
    ],
)
def test_a_message_changed_in_place_ends_the_call_and_is_neither_sent_nor_kept(
    hook: Callable[..., Any], fault: str
) -> None:
    result, sent = long_run(hook, steps=3)
    assert isinstance(result.error, HookError)
    assert result.error.message == f"the hook {hook.__name__} at pre_llm_call {fault}"
    assert result.error.line == hook.__code__.co_firstlineno
    assert "dataclasses.replace" in (result.error.hint or "")
    assert "forged" not in str([sent, result.messages])


def test_a_hook_may_change_its_list_and_return_it() -> None:
    def insist(agent: Any, messages: list[Any]) -> list[Any]:
        messages.append(ModelRequest([UserPromptPart("Be brief.")]))
        return messages

    runtime = runtime_of([agent("main", script("fin"), hooks=[(HookPoint.PRE_LLM_CALL, insist)])])
    log = heard(runtime, "hook")
    result = carry_out(runtime)
    assert result.status == "completed"
    [event] = log.events
    assert [part["content"] for each in event.replacement for part in each["parts"]] == ["Be brief."]
    assert len(result.messages) == 2


def test_a_change_of_an_old_message_is_not_sent_and_is_found_when_its_turn_has_come() -> None:
    def elide(agent: Any, messages: list[Any]) -> None:
        if len(messages) == 101:
            messages[20].parts[0].content = "elided"

    result, sent = long_run(elide, steps=150)
    assert isinstance(result.error, HookError)
    assert "changed message 21 of " in result.error.message
    assert 51 < len(sent) < 51 + 2 * 180 / message_copies.OLDER
    assert "elided" not in str([sent, result.messages])


def test_what_a_hook_keeps_and_changes_later_changes_nothing_that_is_sent_again() -> None:
    kept: list[Any] = []

    def keep(agent: Any, messages: list[Any]) -> list[Any]:
        kept.append(ModelRequest([UserPromptPart("short")]))
        return kept

    def fail_once(*_: Any) -> Any:
        if len(main.asked) > 1:
            return "fin"
        kept[-1].parts[0].content = "forged"
        return ModelHTTPError(503, "mine", None)

    main = script(fail_once)
    project = project_of([agent("main", main, hooks=[(HookPoint.PRE_LLM_CALL, keep)])])
    result = carry_out(Runtime(project, config=RuntimeConfig.of(project, approvals="approve_all", retry_delay=0.0)))
    assert result.error is None
    assert [each.prompt for each in main.asked] == ["short", "short"]


def test_each_hook_sees_what_those_before_it_returned_and_none_what_they_changed() -> None:
    seen: list[str] = []

    def shorten(agent: Any, messages: list[Any]) -> list[Any]:
        return [replace(messages[0], parts=[UserPromptPart("short")])]

    def see(agent: Any, messages: list[Any]) -> None:
        seen.append(messages[0].parts[0].content)

    hooks = [(HookPoint.PRE_LLM_CALL, hook) for hook in (see, shorten, see)]
    assert carry_out(runtime_of([agent("main", script("fin"), hooks=hooks)]), "long").status == "completed"
    assert seen == ["long", "short"]


def read_all(agent: Any, messages: list[Any]) -> None:
    assert all(part.part_kind for message in messages for part in message.parts)


def return_all(agent: Any, messages: list[Any]) -> list[Any]:
    return messages


@each_row("hook", [read_all, return_all])
def test_a_hook_that_changes_nothing_costs_as_much_at_the_last_request_as_at_the_first(
    hook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {"copy_data": 0, "is_unchanged": 0}
    by_request: list[dict[str, int]] = []

    def counting(name: str) -> None:
        real = getattr(message_copies, name)

        def count(*values: Any) -> Any:
            counted[name] += 1
            return real(*values)

        monkeypatch.setattr(message_copies, name, count)

    counting("copy_data")
    counting("is_unchanged")

    def measured(agent: Any, messages: list[Any]) -> Any:
        by_request.append(dict(counted))
        return hook(agent, messages)

    result, sent = long_run(measured)
    assert result.error is None
    assert len(sent) == STEPS
    assert counted["copy_data"] == 2 * STEPS - 1
    looked = [after["is_unchanged"] - before["is_unchanged"] for before, after in pairwise(by_request)]
    assert max(looked) == looked[-1] == 1 + message_copies.OLDER + message_copies.LAST
    assert sent[-1] == result.messages[:-1]


class Opaque:
    """An object that is equal to no other."""


@each_row("detail", [Opaque(), threading.Lock(), float("nan"), [{"deep": Opaque()}]])
def test_a_hook_that_only_looks_at_a_response_may_be_shown_any_object(detail: Any) -> None:
    seen: list[Any] = []

    def see(agent: Any, response: ModelResponse) -> None:
        seen.append(response.provider_details)

    def keep(agent: Any, response: ModelResponse) -> ModelResponse:
        return response

    answer = ModelResponse([TextPart("fin")], provider_details={"raw": detail})
    hooks = [(HookPoint.POST_LLM_CALL, see), (HookPoint.POST_LLM_CALL, keep)]
    runtime = runtime_of([agent("main", script(answer), hooks=hooks)])
    log = heard(runtime, "hook")
    result = carry_out(runtime)
    assert (result.error, result.output, log.events) == (None, "fin", [])
    assert type(seen[0]["raw"]) is type(detail)


def test_another_object_in_a_response_is_another_response() -> None:
    def exchange(agent: Any, response: ModelResponse) -> ModelResponse:
        return replace(response, provider_details={"raw": "text"})

    def change(agent: Any, response: ModelResponse) -> None:
        assert response.provider_details is not None
        response.provider_details["raw"] = Opaque()

    answer = ModelResponse([TextPart("fin")], provider_details={"raw": Opaque()})
    found = carry_out(runtime_of([agent("main", script(answer), hooks=[(HookPoint.POST_LLM_CALL, exchange)])]))
    last = found.messages[-1]
    assert isinstance(last, ModelResponse)
    assert last.provider_details == {"raw": "text"}
    refused = carry_out(runtime_of([agent("main", script(answer), hooks=[(HookPoint.POST_LLM_CALL, change)])]))
    assert isinstance(refused.error, HookError)
    assert refused.error.message.endswith("returned None, but changed the response in place")


def test_data_that_contains_itself_is_copied() -> None:
    data: dict[str, Any] = {"list": []}
    data["list"].append(data)
    copy = copy_data(data)
    assert copy["list"][0] is copy is not data
    assert is_unchanged(copy, take_snapshot(copy))
