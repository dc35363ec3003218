"""What a provider or a model leaves out: token counts, streaming, half of an answer, patience."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from llm_do import ProviderError, RunResult, Runtime, RuntimeConfig, register_model_factory
from tests.support.runs import Heard, agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


class OwnModel(Model):
    """A project's own model: it can't stream, and says nothing about tokens."""

    def __init__(self, *answers: ModelResponse) -> None:
        super().__init__()
        self.answers = list(answers)

    @property
    def model_name(self) -> str:
        return "own"

    @property
    def system(self) -> str:
        return "house"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Loud(WrapperModel):
    """Changes what a model says, in `request` alone."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await super().request(messages, model_settings, model_request_parameters)
        return ModelResponse([TextPart(f"{part.content}!") for part in response.parts if isinstance(part, TextPart)])


def said(text: str, **fields: Any) -> ModelResponse:
    return ModelResponse([TextPart(text)], **fields)


def ran(model: Any, *, streaming: bool, **options: Any) -> tuple[RunResult, Heard]:
    runtime = runtime_of([agent("main", model)], **options)
    ear = heard(runtime) if not streaming else heard(runtime, None)
    if streaming:
        runtime.on("text", lambda event: None)
    return carry_out(runtime), ear


def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
    return said("Yes")


MODELS: dict[str, Callable[[], Any]] = {
    "own": lambda: OwnModel(said("Yes")),
    "function": lambda: FunctionModel(answer),
    "wrapped": lambda: WrapperModel(OwnModel(said("Yes"))),
    "wrapper with its own request": lambda: Loud(script("Yes")),
    "fallback": lambda: FallbackModel(OwnModel(said("Yes")), script("No")),
    "list in a file": lambda: ["odd-own:a", "odd-own:b"],
}


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_without_streaming_answers_in_every_view(name: str, streaming: bool) -> None:
    register_model_factory("odd-own", lambda _: OwnModel(said("Yes")))
    result, ear = ran(MODELS[name](), streaming=streaming)

    expected = "Yes!" if name.startswith("wrapper with") else "Yes"
    assert (result.status, result.output) == ("completed", expected)
    assert [event.text for event in ear.of("text")] == ([expected] if streaming else [])
    assert [event.text for event in ear.of("text_done")] == [expected]


def test_a_model_that_refuses_to_stream_only_when_asked_answers_too() -> None:
    class Late(OwnModel):
        def request_stream(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    result, ear = ran(Late(said("Yes")), streaming=True)

    assert result.output == "Yes"
    assert [event.text for event in ear.of("text")] == ["Yes"]


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_tokens_that_a_model_does_not_report_are_estimated_with_one_warning(streaming: bool) -> None:
    model = OwnModel(ModelResponse([ToolCallPart("look", {})]), said("word " * 200))

    def look() -> str:
        """Look."""
        return "seen " * 400

    runtime = runtime_of([agent("main", model, tools=[look])])
    if streaming:
        runtime.on("text", lambda event: None)
    ear = heard(runtime)
    result = carry_out(runtime)

    assert result.output == "word " * 200
    assert result.usage.output_tokens >= 200
    assert result.usage.input_tokens >= 400
    assert len(ear.of("warning")) == len(result.warnings) == 1
    assert "doesn't say how many tokens it uses" in result.warnings[0].message
    assert sum(event.usage["total_tokens"] for event in ear.of("usage")) == result.usage.total_tokens


def test_a_count_that_is_reported_stays() -> None:
    result, _ = ran(OwnModel(said("Yes", usage=RequestUsage(input_tokens=1, output_tokens=2))), streaming=False)

    assert (result.usage.input_tokens, result.usage.output_tokens, result.warnings) == (1, 2, [])


@pytest.mark.parametrize("budget", [{"output_tokens": 100}, {"total_tokens": 300}])
def test_a_budget_counts_what_a_model_does_not_report(budget: dict[str, int]) -> None:
    model = OwnModel(ModelResponse([TextPart("word " * 200), ToolCallPart("look", {})]))

    def look() -> str:
        """Look."""
        return "seen"

    result = carry_out(runtime_of([agent("main", model, tools=[look], loop_threshold=0)], budget=budget))

    assert result.status == "limited"
    assert result.usage.requests == 1


@pytest.mark.parametrize(
    ("reason", "warning", "note"),
    [
        ("length", "cut off at its output limit", "cut off at the output limit"),
        ("content_filter", "a content filter cut", "a content filter cut it short"),
    ],
)
def test_a_calling_model_is_told_that_an_answer_is_not_whole(reason: Any, warning: str, note: str) -> None:
    helper = agent(
        "helper",
        OwnModel(said("half of it", finish_reason=reason, usage=RequestUsage(input_tokens=1, output_tokens=1))),
    )
    model = script(call("helper", input="go"), "done")
    result = carry_out(runtime_of([agent("main", model, toolsets=[helper]), helper]))

    assert result.output == "done"
    [told] = [part.content for part in model.asked[-1].messages[-1].parts]
    assert told == f"half of it\n\n[This answer is incomplete: it was {note}.]".replace("it was a", "a")
    assert [warning in record.message for record in result.warnings] == [True]
    assert result.warnings[0].agent_path == "main/helper"


def test_an_answer_of_its_own_says_nothing_of_an_earlier_one() -> None:
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    cut = ModelResponse([ToolCallPart("look", {})], finish_reason="length", usage=usage)

    def look() -> str:
        """Look."""
        return "seen"

    helper = agent("helper", OwnModel(cut, said("all of it", usage=usage)), tools=[look])
    model = script(call("helper", input="go"), "done")
    carry_out(runtime_of([agent("main", model, toolsets=[helper]), helper]))

    assert [part.content for part in model.asked[-1].messages[-1].parts] == ["all of it"]


def test_an_earlier_text_is_the_output_of_a_run_that_fails_in_every_view() -> None:
    def add() -> str:
        """Add."""
        return "3"

    for streaming in (False, True):
        model = script([TextPart("thinking aloud"), call("add")], RuntimeError("gone"))
        runtime = runtime_of([agent("main", model, tools=[add])])
        if streaming:
            runtime.on("text", lambda event: None)
        assert carry_out(runtime).output == "thinking aloud"


def asked_to_wait(seconds: float) -> tuple[RunResult, list[str]]:
    """Run an agent whose provider asks to wait, until it waits or has failed."""
    notices: list[str] = []
    refusal = ModelHTTPError(429, "m", {"error": "slow\x1b[2J down"}, headers={"Retry-After": str(seconds)})
    project = project_of([agent("main", script(refusal, "Yes"))])
    runtime = Runtime(project, config=RuntimeConfig.of(project, notice=notices.append))
    runtime.on("retry", lambda event: runtime.interrupt())
    return carry_out(runtime), notices


def test_a_long_pause_that_a_provider_asks_for_is_reported() -> None:
    result, notices = asked_to_wait(30)

    assert result.status == "interrupted"
    assert notices == [r"main waits 30 s to ask its model again: HTTP 429: slow\x1b[2J down"]


def test_a_pause_of_minutes_is_a_failure_that_says_so() -> None:
    result, notices = asked_to_wait(600)

    assert result.status == "provider_failed"
    assert isinstance(result.error, ProviderError)
    assert "asks to wait 600 s" in (result.error.hint or "")
    assert notices == []


def test_which_model_of_a_list_is_tried_next_is_an_event() -> None:
    def model(name: str) -> Model:
        return script(ModelHTTPError(400, name, {"error": "no"})) if name == "bad" else script("Yes")

    register_model_factory("in-turn", model)
    result, ear = ran(["in-turn:bad", "in-turn:good"], streaming=False)

    assert (result.output, result.usage.requests) == ("Yes", 2)
    assert [(event.attempt, event.delay, event.error, event.model) for event in ear.of("retry")] == [
        (1, 0.0, "HTTP 400: no", "in-turn:good")
    ]
