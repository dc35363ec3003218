"""Guards: what an agent gets and returns can be replaced, or refused, by functions of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from llm_do import AgentArgs, CallContext, EntryError, GuardError, Project, RunResult, Runtime
from llm_do.linker.linker import check_project
from tests.support.runs import agent, carry_out, heard, run_spec, runtime_of
from tests.support.scripted import call, script


def echo(messages: Any, _: Any) -> str:
    """Answer with the prompt."""
    return str(messages[-1].parts[-1].content)


def without_secrets(text: str) -> str:
    return text.replace("s3cret", "***")


def shout(output: str) -> str:
    return output.upper()


def silent(_: object) -> None:
    pass


def refuse(value: object) -> None:
    raise GuardError("it is too long", hint="shorten it")


def error_of(result: RunResult, kind: type[Exception]) -> Any:
    assert isinstance(result.error, kind)
    return result.error


def test_guards_replace_input_and_output_in_their_order_and_the_record_says_so() -> None:
    runtime = runtime_of(
        [
            agent(
                "main",
                script(echo),
                input_guards=[silent, without_secrets],
                output_guards=[shout, lambda text: text + "!"],
            )
        ]
    )
    log = heard(runtime, "guard")
    assert carry_out(runtime, "my s3cret").output == "MY ***!"
    assert [(event.guard, event.side, event.to_dict()["replacement"]) for event in log.events] == [
        ("without_secrets", "input", {"input": "my ***", "attachments": []}),
        ("shout", "output", "MY ***"),
        ("<lambda>", "output", "MY ***!"),
    ]


def test_a_guard_may_be_async_and_take_the_context_and_the_model_of_the_input() -> None:
    class Order(AgentArgs):
        item: str
        count: int = 1

    seen: list[Any] = []

    async def one_only(order: Order, ctx: CallContext) -> dict[str, Any] | None:
        seen.append((order, ctx.path))
        return {"item": order.item, "count": 1} if order.count > 1 else None

    spec = agent("main", script(echo), input_model=Order, input_guards=[one_only])
    assert run_spec(spec, {"item": "tea", "count": 5}).output == '{"item":"tea","count":1}'
    assert run_spec(spec, {"item": "tea"}).output == '{"item":"tea","count":1}'
    assert seen == [(Order(item="tea", count=5), "main"), (Order(item="tea"), "main")]


def test_a_guard_of_a_typed_output_gets_and_returns_that_type() -> None:
    class Price(BaseModel):
        euros: float

    answer = [call("final_result", euros=1.26)]
    spec = agent("main", script(answer, answer), output_type=Price)
    spec.output_guards = [lambda price: {"euros": round(price.euros, 1)}]
    assert run_spec(spec).output == Price(euros=1.3)
    spec.output_guards = [lambda price: {"dollars": 1}]
    assert "the guard <lambda> returned no output of main: Field required" in str(error_of(run_spec(spec), EntryError))


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_guard_that_refuses_ends_the_call_with_its_reason(side: str) -> None:
    spec = agent("main", script("done"), **{f"{side}_guards": [refuse]})
    result = run_spec(spec)
    error = error_of(result, GuardError)
    assert (result.status, error.message) == ("failed", f"the guard refuse refused the {side} of main: it is too long")
    assert (error.hint, error.agent_path) == ("shorten it", "main")


def test_the_reason_is_what_a_calling_agent_reads_and_flows_and_code_catch() -> None:
    def last_result(messages: Any, _: Any) -> str:
        return str(messages[-1].parts[0].content)

    lead = agent("main", script([call("writer", input="go")], last_result), toolsets=["writer"])
    writer = agent("writer", script("a draft"), output_guards=[refuse])
    assert (
        "the guard refuse refused the output of writer: it is too long" in carry_out(runtime_of([lead, writer])).output
    )

    async def entry(input: Any, ctx: CallContext) -> str:
        try:
            return await ctx.call("writer", "go")
        except GuardError as error:
            return f"caught: {error.agent_path}"

    assert carry_out(runtime_of([writer], entry)).output == "caught: entry/writer"


def test_what_a_guard_gets_wrong_is_an_error_with_its_place() -> None:
    def broken(text: str) -> str:
        raise ValueError("no such word")

    for guards, text in (
        ({"input_guards": [broken]}, "the guard broken failed: ValueError: no such word"),
        (
            {"input_guards": [lambda text: 7]},
            "the guard <lambda> returned no input of main: input must be text or an object",
        ),
        ({"input_guards": [lambda text: ""]}, "returned no input of main: "),
        (
            {"output_guards": [lambda text: 7]},
            "the guard <lambda> returned no output of main: Input should be a valid string",
        ),
    ):
        error = error_of(run_spec(agent("main", script("done"), **guards)), EntryError)
        assert text in str(error)
        assert error.hint or error.line


def test_text_is_not_streamed_before_a_guard_has_seen_it() -> None:
    for guards, count in (([], 1), ([shout], 0)):
        runtime = runtime_of([agent("main", script("a secret"), output_guards=guards)])
        texts = heard(runtime, "text")
        carry_out(runtime)
        assert bool(texts.events) == bool(count)


def test_guards_are_declared_in_files_and_checked_when_they_are_linked(tmp_path: Path) -> None:
    (tmp_path / "project.json").write_text(
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["guards.py"]}'
    )
    (tmp_path / "guards.py").write_text("def short(text: str): return text[:3]\ndef three(a, b, c): ...\nlast = 3\n")
    file = tmp_path / "main.agent"
    head = "---\nname: main\nmodel: test\n"
    file.write_text(f"{head}output_guards: ['guards.py:short']\n---\nHelp.\n")
    assert len(carry_out(Runtime(Project.load(tmp_path))).output) == 3
    file.write_text(f"{head}input_guards: ['guards.py:three', 'guards.py:last', 'guards.py:shrt']\n---\nHelp.\n")
    assert [(item.line, item.column) for item in check_project(tmp_path).diagnostics] == [(4, 16), (4, 35), (4, 53)]


def test_a_guard_that_changes_what_it_got_has_to_return_it() -> None:
    class Order(AgentArgs):
        items: list[str]

    def drop(order: Order) -> None:
        order.items.clear()

    def add(order: Order) -> Order:
        order.items.append("milk")
        return order

    refused = run_spec(agent("main", script(echo), input_model=Order, input_guards=[drop]), {"items": ["tea"]})
    assert error_of(refused, EntryError).message == (
        "the guard drop returned None, but changed the input of main in place"
    )
    runtime = runtime_of([agent("main", script(echo), input_model=Order, input_guards=[add])])
    log = heard(runtime, "guard")
    assert carry_out(runtime, {"items": ["tea"]}).output == '{"items":["tea","milk"]}'
    assert [event.to_dict()["replacement"] for event in log.events] == [{"items": ["tea", "milk"]}]
