"""Names that no provider takes never go back to one; what is kept and reported is what the model wrote."""

from __future__ import annotations

from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart

from llm_do import Runtime
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

NAMES = ["", "functions.add", "add" * 24, "добавить", "a b", "add\n", "x" * 65]


def names(messages: list[ModelMessage]) -> list[str]:
    """Names of tools in a history: of calls and their results."""
    kinds = (ToolCallPart, ToolReturnPart)
    return [part.tool_name for message in messages for part in message.parts if isinstance(part, kinds)]


@each_row("name", NAMES)
def test_an_invalid_name_is_sent_as_a_valid_one_and_kept_as_it_was(name: str) -> None:
    model = script(call(name, {}, "c1"), "done")
    runtime = runtime_of([agent("main", model)])
    ear = heard(runtime, "tool_call")
    result = carry_out(runtime)

    assert result.output == "done"
    [sent, answered] = names(model.asked[-1].messages)
    assert sent == answered
    assert sent.isascii()
    assert 0 < len(sent) <= 64
    assert sent.replace("_", "").isalnum() or set(sent) == {"_"}
    assert names(result.messages) == [name, name]
    assert [event.tool_name for event in ear.events] == [name]


def test_a_thread_that_has_such_a_name_works_again(tmp_path: Path) -> None:
    model = script(call("functions.add", {}, "c" * 99), "done")
    project = project_of([agent("main", model)], root=tmp_path)
    carry_out(Runtime(project, approvals="approve_all"), thread_id="t")
    result = carry_out(Runtime(project, approvals="approve_all"), thread_id="t")

    assert names(model.asked[-1].messages) == ["functions_add"] * 4
    assert names(result.messages) == ["functions.add"] * 4
    ids = {part.tool_call_id for part in model.asked[-1].messages[1].parts if isinstance(part, ToolCallPart)}
    assert all(len(each) <= 64 for each in ids)


def test_a_history_from_elsewhere_is_sent_with_valid_names() -> None:
    history = [
        ModelRequest([UserPromptPart("go")]),
        ModelResponse([ToolCallPart("a.b", {}, tool_call_id="1 2"), ToolCallPart("a_b", {}, tool_call_id="3")]),
        ModelRequest([ToolReturnPart("a.b", "x", tool_call_id="1 2"), ToolReturnPart("a_b", "y", tool_call_id="3")]),
        ModelResponse([]),
    ]
    model = script("done")
    carry_out(runtime_of([agent("main", model)]), messages=history)

    sent = model.asked[-1].messages
    assert names(sent) == ["a_b"] * 4
    [asked] = [[part.tool_call_id for part in message.parts] for message in sent[1:2]]  # type: ignore[union-attr]
    [answered] = [[part.tool_call_id for part in message.parts] for message in sent[2:3]]  # type: ignore[union-attr]
    assert asked == answered
    assert " " not in asked[0]
    assert asked[1] == "3"


def test_valid_names_are_sent_as_they_are() -> None:
    def add_2(a: int) -> int:
        """Add."""
        return a

    model = script(call("add_2", {"a": 1}, "call_1|fc_2"), "done")
    carry_out(runtime_of([agent("main", model, tools=[add_2])]))

    assert names(model.asked[-1].messages) == ["add_2", "add_2"]
    assert model.asked[-1].messages[1].parts[0].tool_call_id == "call_1|fc_2"  # type: ignore[union-attr]
