from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelRateLimitError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters

from llm_do.errors import ModelError, ModelUnavailableError
from llm_do.models import ModelPool
from llm_do.models.builtin.script_file import parse_script
from tests.support.tables import each_row


class Sum(BaseModel):
    total: int


def agent_of(tmp_path: Path, script: str, agent: str = "main", **options: Any) -> Agent[None, Any]:
    path = tmp_path / "answers.yaml"
    path.write_text(script, encoding="utf-8")
    made = Agent(ModelPool().get(f"script:{path}", agent=agent), **options)

    @made.tool_plain
    def add(a: int, b: int) -> int:
        return a + b

    return made


def ask(agent: Agent[None, Any], text: str = "Hi", **options: Any) -> Any:
    return asyncio.run(agent.run(text, **options))


ADDING = """
- text: Let me see.
  tools: [{name: add, args: {a: 1, b: 2}, id: call-1}]
- text: "{input} makes {tool}"
  usage: [7, 5]
"""


def test_turns_are_answered_in_order_with_input_and_result_filled_in(tmp_path: Path) -> None:
    result = ask(agent_of(tmp_path, ADDING), "1 + 2")
    assert result.output == "1 + 2 makes 3"
    first = result.all_messages()[1]
    assert next(part for part in first.parts if isinstance(part, ToolCallPart)).tool_call_id == "call-1"


def test_token_counts_come_from_the_script(tmp_path: Path) -> None:
    result = ask(agent_of(tmp_path, "- {text: Hello, usage: [7, 5]}"))
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 5)


def test_each_run_starts_the_script_over_and_concurrent_runs_are_independent(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, ADDING)

    async def several() -> list[str]:
        return [result.output for result in await asyncio.gather(*(agent.run(f"run {n}") for n in range(20)))]

    assert asyncio.run(several()) == [f"run {n} makes 3" for n in range(20)]


def test_a_continued_conversation_continues_the_script(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "[{text: one}, {text: two}]")
    first = ask(agent)
    assert ask(agent, message_history=first.all_messages()).output == "two"


def test_a_script_streams_word_by_word(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "- {text: 'one two  three', usage: [3, 4]}")

    async def stream() -> tuple[list[str], int]:
        async with agent.run_stream("Hi") as run:
            pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
            return pieces, run.usage.output_tokens

    assert asyncio.run(stream()) == (["one ", "two  ", "three"], 4)


def test_a_streamed_call_is_the_same_call(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, ADDING)
    seen: list[str] = []

    async def handler(_: Any, events: Any) -> None:
        seen.extend([type(event).__name__ async for event in events])

    assert ask(agent, "1 + 2", event_stream_handler=handler).output == "1 + 2 makes 3"
    assert "FunctionToolResultEvent" in seen


@pytest.mark.parametrize("wrap", [lambda kind: kind, NativeOutput])
def test_structured_output_uses_the_output_types_mode(tmp_path: Path, wrap: Any) -> None:
    assert ask(agent_of(tmp_path, "- output: {total: 3}", output_type=wrap(Sum))).output == Sum(total=3)


def test_each_agent_has_its_own_turns(tmp_path: Path) -> None:
    script = "agents: {main: [{text: from main}], critic: [{text: from critic}]}"
    assert ask(agent_of(tmp_path, script, "critic")).output == "from critic"


def test_an_agent_without_turns_is_an_error_that_shows_the_prompt(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no turns for agent 'main'; the prompt was 'Hi there'"):
        ask(agent_of(tmp_path, "agents: {critic: [{text: x}]}"), "Hi   there")


def test_an_exhausted_script_is_an_error_that_shows_the_prompt(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        ask(agent_of(tmp_path, "- tools: [{name: add, args: {a: 4, b: 5}}]"))
    assert "has 1 turn for agent 'main', which made another request" in raised.value.message
    assert "'9'" in raised.value.message
    assert raised.value.file == str(tmp_path / "answers.yaml")


def test_an_unmet_expectation_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expects 'Bye' from agent 'main'; the prompt was 'Hi'") as raised:
        ask(agent_of(tmp_path, "\n- text: ok\n  expect: Bye\n"))
    assert raised.value.line == 2


CASES = "- cases: [{expect: one, text: first}, {expect: two, text: second}, {text: else}]"


@pytest.mark.parametrize(
    ("prompt", "answer"), [("one", "first"), ("two", "second"), ("one two", "first"), ("x", "else")]
)
def test_a_turn_may_depend_on_what_is_asked(tmp_path: Path, prompt: str, answer: str) -> None:
    assert ask(agent_of(tmp_path, CASES), prompt).output == answer


def test_a_message_that_no_case_expects_is_an_error_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expects 'one' or 'two' from agent 'main'; the prompt was 'three'"):
        ask(agent_of(tmp_path, CASES.replace(", {text: else}", "")), "three")


def test_an_error_is_repeated_as_configured_before_the_next_turn(tmp_path: Path) -> None:
    model = agent_of(tmp_path, "[{error: {status: 429, times: 2, retry_after: 3}}, {text: at last}]").model
    assert isinstance(model, Model)

    async def three_times() -> list[object]:
        messages: list[ModelMessage] = [ModelRequest([UserPromptPart("Hi")], run_id="run")]
        return [
            (await asyncio.gather(model.request(messages, None, ModelRequestParameters()), return_exceptions=True))[0]
            for _ in range(3)
        ]

    first, second, third = asyncio.run(three_times())
    assert isinstance(first, ModelRateLimitError)
    assert first.retry_after == 3
    assert isinstance(second, ModelHTTPError)
    assert isinstance(third, ModelResponse)
    assert third.text == "at last"


def test_concurrent_runs_each_get_the_errors_of_a_script(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "[{error: {status: 429}}, {text: at last}]")
    for _ in range(2):
        with pytest.raises(ModelRateLimitError):
            ask(agent)


def test_an_error_without_status_is_a_lost_connection(tmp_path: Path) -> None:
    with pytest.raises(ModelConnectionError, match="the line is dead"):
        ask(agent_of(tmp_path, "- error: {message: the line is dead}"))


@each_row(
    "script, line, message",
    [
        ("- text: a\n- txt: b", 2, "unknown key 'txt'; known keys: text, tools"),
        ("- text: 5", 1, "`text: 5`, which must be text"),
        ("- {}", 1, "without `text`"),
        ("-\n  - a", 2, "that is not a mapping"),
        ("- text: a\n  error: {}", 1, "`error` and other keys"),
        ("- tools: [{args: {}}]", 1, "a call without `name`"),
        ("- text: a\n  usage: [1]", 1, "two numbers"),
        ("- error: {status: 200}", 1, "from 400 to 599"),
        ("- text: a\n  delay: -1", 1, "a number of seconds"),
        ("agents:\n  main: hello", 2, "must have a list of turns here"),
        ("agents: [a]", 1, "one list of turns for each agent"),
        ("turns: []", 1, "unknown key 'turns'"),
        ("- cases: []", 1, "`cases` are not a list of turns"),
        ("- cases: [{text: a}]\n  text: b", 1, "other keys as well"),
        ("- cases: [{error: {status: 500}}]", 1, "`cases` with an `error`"),
        ("- cases: [{cases: [{text: a}]}]", 1, "other `cases` in them"),
        ("{}", 1, "must have turns or `agents`"),
        ("hello", 1, "must be a list of turns, or"),
        ("", 1, "must be a list of turns, or"),
        ("- text: 'a\n", 2, "is not YAML"),
        ("- text: !!python/object:os.system {}", 1, "is not YAML"),
    ],
)
def test_an_invalid_script_is_reported_with_its_line(script: str, line: int, message: str) -> None:
    with pytest.raises(ModelUnavailableError) as raised:
        parse_script(script, Path("answers.yaml"))
    assert message in raised.value.message
    assert raised.value.line == line
    assert raised.value.file == "answers.yaml"


@given(st.text(alphabet=st.sampled_from("-{}[]:,'\"&*!#|>\n \tatext0.:agents")))
def test_any_text_is_a_script_or_a_typed_error(text: str) -> None:
    with suppress(ModelUnavailableError):
        parse_script(text, Path("answers.yaml"))


@pytest.mark.parametrize("path", ["a\0b", "~no-such-user/a.yaml", "a" * 5000])
def test_an_impossible_file_name_is_a_typed_error(path: str) -> None:
    with pytest.raises(ModelUnavailableError, match="can't be read"):
        ModelPool().get(f"script:{path}", agent="main")


def test_a_script_may_be_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answers.yaml").write_text("- text: from home", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ask(Agent(ModelPool().get("script:~/answers.yaml", agent="main"))).output == "from home"


def test_a_missing_script_is_a_typed_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"absent\.yaml can't be read: No such file"):
        ModelPool().get(f"script:{tmp_path / 'absent.yaml'}", agent="main")
