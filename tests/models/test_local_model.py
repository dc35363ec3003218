"""The local model's steps with scripted generations, and with the real weights if installed."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.exceptions import ModelTimeoutError
from pydantic_ai.messages import ModelResponse, ToolCallPart

from llm_do.errors import ModelError, ModelUnavailableError
from llm_do.models import ModelPool
from llm_do.models.builtin import local_model as local_module, weights
from llm_do.models.builtin.engine import Generation, Prompt
from llm_do.models.builtin.local_model import LocalModel


class Answer(BaseModel):
    name: str
    total: int


class Other(BaseModel):
    reason: str


class Writer:
    """A stand-in for the engine that returns scripted generations and records the prompts."""

    def __init__(self, path: Path, *texts: str) -> None:
        self.path = path
        self.texts = list(texts)
        self.prompts: list[Prompt] = []

    async def generate(self, prompt: Prompt, on_text: Callable[[str], None] | None = None) -> Generation:
        self.prompts.append(prompt)
        text = self.texts.pop(0)
        if text == "HANG":
            await asyncio.Event().wait()
        for word in text.split(" ") if on_text else ():
            on_text(word + " ") if on_text else None
        return Generation(text, prompt_tokens=10, completion_tokens=3, cached_tokens=2, truncated=text.endswith("CUT"))


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[LocalModel, Writer]]:
    def make(*texts: str, name: str = "mine.gguf") -> tuple[LocalModel, Writer]:
        path = tmp_path / name
        path.write_bytes(b"GGUF")
        writer = Writer(path, *texts)
        monkeypatch.setattr(local_module, "engine_for", lambda _: writer)
        monkeypatch.setattr(local_module, "check_runtime", lambda: None)
        return LocalModel(str(path)), writer

    return make


def adding(model: LocalModel, **options: Any) -> Agent[None, Any]:
    agent = Agent(model, instructions="Be brief.", **options)

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: One.
            b: Other.
        """
        return a + b

    @agent.tool_plain
    def today() -> str:
        """Return the date."""
        return "Friday"

    return agent


def test_text_is_answered_with_text(local: Any) -> None:
    model, writer = local("Hello")
    result = asyncio.run(Agent(model, instructions="Be brief.").run("Hi"))
    assert result.output == "Hello"
    assert writer.prompts[0].messages == [("system", "Be brief."), ("user", "Hi")]
    assert writer.prompts[0].schema is None
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cache_read_tokens) == (10, 3, 2)


def test_the_built_in_model_gets_its_identity_and_its_user_a_quality_warning(local: Any) -> None:
    model, writer = local("Hello", name=weights.NAME)
    notices: list[str] = []
    model._notice = notices.append
    asyncio.run(Agent(model, instructions="Be brief.").run("Hi"))
    assert writer.prompts[0].messages[0][1].startswith("You are a helpful AI assistant named SmolLM")
    assert ["demonstration quality" in sentence for sentence in notices] == [True]


def test_a_tool_call_chooses_the_tool_then_writes_its_arguments_then_answers_from_the_result(local: Any) -> None:
    model, writer = local('"add"', '{"a": 1, "b": 2}', '"final"', "It is 3.")
    result = asyncio.run(adding(model).run("1 + 2?"))
    assert result.output == "It is 3."
    choice, arguments, _, answer = writer.prompts
    assert choice.schema == {"enum": ["add", "today", "final"]}
    assert "- add: Add two numbers." in choice.messages[-1][1]
    assert "1 + 2?" in arguments.messages[-1][1]
    assert "{a: integer, b: integer}" in arguments.messages[-1][1]
    assert answer.messages[-1][1] == "Result of add: 3"
    assert result.usage.output_tokens == 12


def test_a_tool_without_parameters_needs_no_generation(local: Any) -> None:
    model, writer = local('"today"', '"final"', "Friday.")
    assert asyncio.run(adding(model).run("What day?")).output == "Friday."
    assert len(writer.prompts) == 3


def test_a_repeated_call_becomes_an_answer(local: Any) -> None:
    model, _ = local('"add"', '{"a": 1, "b": 2}', '"add"', '{"b": 2, "a": 1}', "It is 3.")
    assert asyncio.run(adding(model).run("1 + 2?")).output == "It is 3."


def test_the_built_in_model_answers_after_one_round_of_tools(local: Any) -> None:
    model, writer = local('"add"', '{"a": 1, "b": 2}', "It is 3.", name=weights.NAME)
    assert asyncio.run(adding(model).run("1 + 2?")).output == "It is 3."
    assert len(writer.prompts) == 3


def test_a_users_model_answers_after_four_rounds_of_tools(local: Any) -> None:
    rounds = [text for n in range(4) for text in ('"add"', json.dumps({"a": n, "b": 1}))]
    model, _ = local(*rounds, "Enough.")
    assert asyncio.run(adding(model).run("Count")).output == "Enough."


def test_a_new_question_may_call_tools_again(local: Any) -> None:
    model, _ = local('"today"', "Friday.", '"today"', "Friday still.", name=weights.NAME)
    agent = adding(model)
    first = asyncio.run(agent.run("What day?"))
    assert asyncio.run(agent.run("And now?", message_history=first.all_messages())).output == "Friday still."


def test_output_through_a_tool_is_its_arguments(local: Any) -> None:
    model, writer = local('{"name": "a", "total": 3}')
    result = asyncio.run(Agent(model, output_type=Answer).run("Hi"))
    assert result.output == Answer(name="a", total=3)
    assert isinstance(result.all_messages()[1].parts[0], ToolCallPart)
    assert writer.prompts[0].schema["required"] == ["name", "total"]


def test_one_of_several_outputs_is_chosen_first(local: Any) -> None:
    model, writer = local('"final_result_Other"', '{"reason": "none"}')
    assert asyncio.run(Agent(model, output_type=[Answer, Other]).run("Hi")).output == Other(reason="none")
    assert writer.prompts[0].schema == {"enum": ["final_result_Answer", "final_result_Other"]}


@pytest.mark.parametrize("wrap", [NativeOutput, PromptedOutput])
def test_output_as_json_text_is_written_under_its_schema(local: Any, wrap: Any) -> None:
    model, writer = local('{"name": "a", "total": 3}')
    assert asyncio.run(Agent(model, output_type=wrap(Answer)).run("Hi")).output == Answer(name="a", total=3)
    assert writer.prompts[0].schema["required"] == ["name", "total"]


def test_a_call_whose_json_was_cut_off_is_a_typed_error(local: Any) -> None:
    model, _ = local('{"name": "CUT')
    with pytest.raises(ModelError, match="cut off before its JSON ended"):
        asyncio.run(Agent(model, output_type=Answer).run("Hi"))


def test_only_set_settings_are_passed_on_and_max_tokens_is_obeyed(local: Any) -> None:
    model, writer = local("Hello")
    settings: Any = {"temperature": 0.7, "stop_sequences": ["x"], "max_tokens": 5, "base_url": "y"}
    asyncio.run(Agent(model).run("Hi", model_settings=settings))
    assert writer.prompts[0].options == {"temperature": 0.7, "stop": ["x"]}
    assert writer.prompts[0].max_tokens == 5


def test_an_answer_that_takes_too_long_is_a_timeout(local: Any) -> None:
    model, _ = local("HANG")
    with pytest.raises(ModelTimeoutError):
        asyncio.run(Agent(model).run("Hi", model_settings={"timeout": 0.01}))


def test_it_streams_as_it_writes(local: Any) -> None:
    model, _ = local("one two")

    async def stream() -> tuple[list[str], int]:
        async with Agent(model).run_stream("Hi") as run:
            pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
            return pieces, run.usage.output_tokens

    assert asyncio.run(stream()) == (["one ", "two "], 3)


def test_a_streamed_call_is_a_call(local: Any) -> None:
    model, _ = local('"add"', '{"a": 1, "b": 2}', '"final"', "It is 3.")

    async def drain(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    assert asyncio.run(adding(model).run("1 + 2?", event_stream_handler=drain)).output == "It is 3. "


def test_a_failure_while_streaming_reaches_the_caller(local: Any) -> None:
    model, _ = local('{"name": "CUT')

    async def drain(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    with pytest.raises(ModelError, match="cut off"):
        asyncio.run(Agent(model, output_type=Answer).run("Hi", event_stream_handler=drain))


@pytest.mark.parametrize("name", ["absent.gguf", f"{'x' * 300}-absent.gguf"])
def test_a_missing_file_is_reported_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelUnavailableError, match=r"there is no file .*absent\.gguf"):
        ModelPool().get(f"local:{tmp_path / name}")


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_DO_LOCAL_MODEL", raising=False)
    monkeypatch.setattr(weights, "find_weights", lambda: None)
    with pytest.raises(ModelUnavailableError) as raised:
        ModelPool().get("local")
    assert "llm-do models pull" in (raised.value.hint or "")
    monkeypatch.setenv("LLM_DO_LOCAL_MODEL", "/absent.gguf")
    with pytest.raises(ModelUnavailableError, match=r"LLM_DO_LOCAL_MODEL names /absent\.gguf"):
        ModelPool().get("local")


class Receipt(BaseModel):
    merchant: str
    date: datetime.date
    amount: float
    category: Literal["meals", "lodging", "transport", "supplies"]


RECEIPTS = [
    ("Blue Bottle Coffee\nDate: 2026-03-14\nLatte 5.50\nCroissant 4.25\nTotal: 9.75 USD", "2026-03-14", 9.75),
    ("Hotel Astoria\nDate: 2026-02-03\nRoom, 2 nights 318.00\nTotal: 318.00 EUR", "2026-02-03", 318.0),
    ("Office Depot\nDate: 2026-01-19\nPaper A4 12.99\nPens 6.49\nTotal: 19.48 USD", "2026-01-19", 19.48),
    ("Deutsche Bahn\nDate: 2026-03-30\nHamburg to Berlin 59.90\nTotal: 59.90 EUR", "2026-03-30", 59.9),
    ("Sushi Ko\nDate: 2026-06-15\nMenu B 36.00\nService 4.00\nTotal: 40.00 CHF", "2026-06-15", 40.0),
    ("Cafe Central\nDate: 2026-07-09\nMelange 5.80\nStrudel 6.20\nTotal: 12.00 EUR", "2026-07-09", 12.0),
]


@pytest.mark.local_model
@pytest.mark.usefixtures("local_weights")
class TestTheRealModel:
    @pytest.mark.slow
    def test_it_reads_plain_receipts_and_counts_its_tokens(self) -> None:
        agent = Agent(
            ModelPool().get("local"),
            output_type=NativeOutput(Receipt),
            instructions="Extract the merchant, the date, the total amount and the category from the receipt.",
        )
        right = 0
        for text, date, amount in RECEIPTS:
            result = asyncio.run(agent.run(text))
            output = result.output
            right += (output.merchant, str(output.date), output.amount) == (text.partition("\n")[0], date, amount)
            assert result.usage.input_tokens > 50
            assert 20 < result.usage.output_tokens < 80
        assert right >= 5

    @pytest.mark.slow
    def test_its_output_always_matches_a_hard_schema(self) -> None:
        class Hard(BaseModel):
            numbers: dict[str, float]
            names: list[str]
            when: datetime.date | None
            count: int
            ratio: float

        result = asyncio.run(Agent(ModelPool().get("local"), output_type=Hard).run("Tell me about the sea."))
        assert len(result.output.names) <= 6

    @pytest.mark.slow
    def test_a_forced_call_has_valid_arguments_and_the_run_ends(self) -> None:
        called: list[tuple[str, int]] = []
        agent = Agent(ModelPool().get("local"), instructions="Use the tools.")

        @agent.tool_plain
        def order(item: str, quantity: int) -> str:
            """Order an item from the shop."""
            called.append((item, quantity))
            return "ordered"

        result = asyncio.run(agent.run("Order 3 apples.", model_settings={"max_tokens": 60}))
        responses = [message for message in result.all_messages() if isinstance(message, ModelResponse)]
        assert len(responses) <= 2
        assert len(called) == len(responses) - 1

    @pytest.mark.slow
    def test_several_requests_wait_for_each_other(self) -> None:
        agent = Agent(ModelPool().get("local"))

        async def three() -> list[str]:
            runs = [agent.run(f"Say {n}", model_settings={"max_tokens": 4}) for n in range(3)]
            return [result.output for result in await asyncio.gather(*runs)]

        assert all(asyncio.run(three()))

    @pytest.mark.slow
    def test_cancelling_stops_it_at_once(self) -> None:
        model = ModelPool().get("local")

        async def cancelled() -> float:
            agent = Agent(model)
            await agent.run("Hi", model_settings={"max_tokens": 1})
            writing = asyncio.Event()

            async def heard(_: Any, events: Any) -> None:
                async for _event in events:
                    writing.set()

            story = agent.run("Tell a long story", model_settings={"max_tokens": 3000}, event_stream_handler=heard)
            task = asyncio.create_task(story)
            await writing.wait()
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await agent.run("Hi", model_settings={"max_tokens": 1})
            return time.monotonic() - started

        assert asyncio.run(cancelled()) < 10

    @pytest.mark.slow
    def test_a_prompt_that_is_too_long_is_reported_with_both_counts(self) -> None:
        with pytest.raises(ModelError, match=r"the prompt is 6\d{3} tokens long; the local model's limit is 4096"):
            asyncio.run(Agent(ModelPool().get("local")).run("word " * 6000))

    def test_its_http_port_is_not_reachable_from_the_network(self, local_weights: Path) -> None:
        from llm_do.models.builtin.engine import engine_for

        asyncio.run(Agent(ModelPool().get("local")).run("Hi", model_settings={"max_tokens": 1}))
        assert engine_for(local_weights)._server.listening_address.startswith("unix:")

    def test_an_invalid_model_file_is_a_typed_error(self, tmp_path: Path) -> None:
        for name, content in (("text.gguf", b"hello"), ("cut.gguf", b"GGUF\x03\x00\x00\x00")):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ModelUnavailableError, match=name.replace(".", r"\.")):
                asyncio.run(Agent(ModelPool().get(f"local:{tmp_path / name}")).run("Hi"))
