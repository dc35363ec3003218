"""The toolkit in a module is a template: every run has a state of its own, and continuing changes no earlier one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llm_do import ContextValidationError, Toolkit, ToolkitError, Update, run
from llm_do.toolkits import Context, ToolkitState, current_state
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script
from tests.toolkits.kits import play


def counter() -> Toolkit:
    kit = Toolkit("counter", context={"n": 0, "log": []})

    @kit.tool(enables_states=["counted"])
    def count(by: int) -> Any:
        """Count, reading the toolkit by its name, by the context variable, and in a worker thread."""
        assert kit.context is current_state()
        n = kit.context.get("n") + by
        return Update(n, n=n, log=[*current_state()["log"], by])

    return kit


def test_a_closure_over_the_toolkit_sees_its_run_and_not_the_template() -> None:
    kit = counter()
    played = play([call("count", by=2), call("count", by=3)], "done", kits=[kit])
    assert played.result.toolkits["counter"].context.to_dict() == {"n": 5, "log": [2, 3]}
    assert kit.context.to_dict() == {"n": 0, "log": []}
    assert kit.unlocked_states == frozenset()


def test_states_can_be_read_in_a_run_and_changed_by_tools_only() -> None:
    kit, seen = counter(), []

    @kit.tool(required_states=["counted"])
    def look() -> str:
        """Look."""
        seen.append((kit.unlocked_states, kit.is_tool_available("look"), kit.get_availability_reason("count")))
        with pytest.raises(ToolkitError, match="only tools change"):
            kit.unlocked_states = {"other"}
        return "seen"

    play([call("count", by=1), call("look")], "done", kits=[kit])
    assert seen == [({"counted"}, True, None)]


def test_a_plain_tool_reads_the_toolkit_of_its_run_and_cannot_change_it() -> None:
    kit, seen = counter(), []

    def plain() -> str:
        """Read the toolkit."""
        seen.append(kit.context["n"])
        with pytest.raises(ToolkitError, match="is read-only"):
            kit.context.set("n", 9)
        return "read"

    play(call("count", by=4), call("plain"), "done", kits=[kit], tools=[plain])
    assert seen == [4]


@pytest.mark.slow
def test_hundreds_of_runs_at_once_see_only_themselves() -> None:
    kit, number = counter(), 100

    async def answer(messages: Any, info: AgentInfo) -> ModelResponse:
        who = next(int(part.content) for part in messages[0].parts if isinstance(part, UserPromptPart))
        done = sum(message.kind == "response" for message in messages)
        await asyncio.sleep(0)
        if done == 3:
            return ModelResponse(parts=[_text("done")])
        return ModelResponse(parts=[ToolCallPart("count", {"by": who}), ToolCallPart("count", {"by": done})])

    runtime = runtime_of([agent("main", FunctionModel(answer), toolsets=[kit])])

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(runtime.run(str(who)) for who in range(number)))

    results = asyncio.run(all_of_them())
    for who, result in enumerate(results):
        assert result.toolkits["counter"].context.to_dict() == {"n": 3 * who + 3, "log": [who, 0, who, 1, who, 2]}
    assert kit.context.to_dict() == {"n": 0, "log": []}


def _text(text: str) -> Any:
    from pydantic_ai.messages import TextPart

    return TextPart(text)


def test_a_run_goes_on_from_any_earlier_one_and_changes_none() -> None:
    runtime = runtime_of([agent("main", script(call("count", by=1), "done"), toolsets=[counter()])])
    first = carry_out(runtime)
    second = carry_out(runtime, execution_context=first.execution_context)
    third = carry_out(runtime, execution_context=second.execution_context)
    branch = carry_out(runtime, execution_context=first.execution_context)
    states = [each.toolkits["counter"].context["n"] for each in (first, second, third, branch)]
    assert states == [1, 2, 3, 2]
    assert [len(each.execution_context.messages) for each in (first, second, third, branch)] == [4, 8, 12, 8]
    assert carry_out(runtime).toolkits["counter"].context["n"] == 1


def test_the_one_liner_goes_on_too() -> None:
    spec = agent("main", script(call("count", by=1), "done"), toolsets=[counter()])
    first = run.sync(spec, "go", approvals="approve_all")
    second = run.sync(spec, "go", approvals="approve_all", execution_context=first.execution_context)
    assert second.toolkits["counter"].context["n"] == 2


def test_a_result_is_for_reading() -> None:
    result = play(call("count", by=1), "done", kits=[counter()]).result
    with pytest.raises(ToolkitError, match="is read-only"):
        result.toolkits["counter"].context.set("n", 7)
    with pytest.raises(TypeError, match="can't be changed in place"):
        result.toolkits["counter"].context["log"].append(1)


def test_a_state_is_json_and_comes_back_under_the_toolkits_own_schemas() -> None:
    kit = Toolkit("kit", validation_enabled=True)
    kit.context.schema.define("n", {"type": "integer"})
    kit.tool(lambda n: ("set", {"n": n}), name="put", enables_states=["put"])  # type: ignore[call-overload]
    model = script(call("put", n=1), "done", call("put", n="x"), "done")
    first = carry_out(runtime_of([agent("main", model, toolsets=[kit])]))
    data = json.loads(json.dumps(first.execution_context.to_dict()["toolkits"]))
    assert data == {"kit": {"context": {"n": 1}, "unlocked_states": ["put"]}}
    state = ToolkitState.from_dict(data["kit"])
    saved = type(first.execution_context)(toolkits={"kit": state})
    second = carry_out(
        runtime_of([agent("main", script(call("put", n="x"), "done"), toolsets=[kit])]), execution_context=saved
    )
    assert second.toolkits["kit"].context.to_dict() == {"n": 1}
    assert second.toolkits["kit"].unlocked_states == {"put"}
    assert "put" in json.dumps(second.to_dict())


def test_states_of_toolkits_that_an_agent_lacks_are_passed_on() -> None:
    first = play(call("count", by=1), "done", kits=[counter()]).result
    other = runtime_of([agent("main", script("done"))])
    second = carry_out(other, execution_context=first.execution_context)
    assert second.toolkits["counter"].context["n"] == 1


def test_the_template_may_be_changed_between_runs() -> None:
    kit = counter()
    assert play(call("count", by=1), "done", kits=[kit]).result.toolkits["counter"].context["n"] == 1
    kit.context.set("n", 10)
    kit.unlocked_states = ["ready"]
    result = play(call("count", by=1), "done", kits=[kit]).result
    assert result.toolkits["counter"].context["n"] == 11
    assert result.toolkits["counter"].unlocked_states == {"ready", "counted"}


def test_the_context_given_to_a_toolkit_stays_the_callers() -> None:
    own = Context(initial_data={"n": 1})
    kit = Toolkit("kit", context=own)
    own.set("n", 2)
    kit.context.set("m", 3)
    assert kit.context.to_dict() == {"n": 1, "m": 3}
    assert own.to_dict() == {"n": 2}


def test_a_toolkit_that_validates_validates_a_context_that_does_not() -> None:
    own = Context(initial_data={"n": 1})
    own.schema.define("n", {"type": "integer"})
    kit = Toolkit("kit", context=own, validation_enabled=True)
    with pytest.raises(ContextValidationError, match="n: "):
        kit.context.set("n", "text")
    own.set("n", "text")
    with pytest.raises(ContextValidationError, match="n: "):
        Toolkit("kit", context=own, validation_enabled=True)
    assert Toolkit("kit", context=Context(validation_enabled=True)).context.validation_enabled


def test_a_copy_has_the_same_tools_and_a_state_of_its_own() -> None:
    kit = counter()
    copy = kit.copy("other")
    copy.context.set("n", 5)
    copy.add_tool("more", lambda: "more")
    assert (kit.context["n"], copy.context["n"], copy.name) == (0, 5, "other")
    with pytest.raises(KeyError):
        kit.is_tool_available("more")


def test_without_a_tool_running_there_is_no_current_state() -> None:
    with pytest.raises(ToolkitError, match="no current state"):
        current_state()


def test_a_copy_of_a_large_context_is_no_copy() -> None:
    kit = Toolkit("kit", context={f"k{number}": number for number in range(50_000)})
    kit.tool(lambda: ("ok", {"k1": 0}), name="go")  # type: ignore[call-overload]
    assert kit.machine.snapshot() is kit.machine.snapshot()
    result = play(call("go"), "done", kits=[kit]).result
    assert len(result.toolkits["kit"].context) == 50_000
    assert kit.context["k1"] == 1
