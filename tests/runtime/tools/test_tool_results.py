"""Every tool call of a model gets exactly one result with its own id, in call order, whatever happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest
from pydantic_ai import ModelRetry, Tool as PydanticTool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed

from llm_do import RunError, Tool, ToolError, ToolFailedError, Toolkit
from llm_do.runtime.context.call_context import CallContext
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, run_spec, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row

LARGE = 4 * 1024 * 1024


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def wait_for_ever() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "no"


def failing(error: BaseException) -> Callable[[], str]:
    def broken() -> str:
        """Fails."""
        raise error

    return broken


def failing_async(error: BaseException) -> Callable[[], Any]:
    async def broken() -> str:
        """Fails."""
        raise error

    return broken


class Query(Tool):
    name = "query"
    description = "Run a query."
    parameters: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"sql": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "required": ["sql"],
        "additionalProperties": False,
    }

    async def execute(self, **kwargs: Any) -> Any:
        return dict(kwargs)


def schema_tool(**kwargs: Any) -> str:
    return f"got {kwargs}"


FROM_SCHEMA = PydanticTool.from_schema(
    schema_tool, "raw", "Raw.", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)

CASES: dict[str, tuple[Any, Any, str, str]] = {
    # name: tool, call, status, text for the model
    "unknown tool": (add, call("nope", a=1), "refused", "unknown tool 'nope'; available: add"),
    "unknown tool, malformed": (add, call("nope", "{{{"), "refused", "unknown tool 'nope'"),
    "unknown tool, a list": (add, call("nope", "[1]"), "refused", "unknown tool 'nope'"),
    "wrong type": (add, call("add", a="one", b=2), "refused", "a: Input should be a valid integer"),
    "missing field": (add, call("add", a=1), "refused", "b: Field required"),
    "malformed JSON": (add, call("add", '{"a": 1,'), "refused", "invalid arguments for add"),
    "a list": (add, call("add", "[1, 2]"), "refused", "invalid arguments for add"),
    "too deep": (add, call("add", "[" * 5000), "refused", "invalid arguments for add"),
    "tool error": (failing(ToolError("no such row")), call("broken"), "failed", "no such row"),
    "exception": (failing(KeyError("x")), call("broken"), "failed", "KeyError: 'x'"),
    "async exception": (failing_async(ValueError("bad")), call("broken"), "failed", "ValueError: bad"),
    "model retry": (failing(ModelRetry("try with b")), call("broken"), "failed", "try with b"),
    "tool failed": (failing_async(ToolFailed("went wrong")), call("broken"), "failed", "went wrong"),
    "stop iteration": (failing(StopIteration("end")), call("broken"), "failed", "end"),
    "stop async iteration": (failing_async(StopAsyncIteration("end")), call("broken"), "failed", "end"),
    "own timeout error": (failing_async(TimeoutError("the server")), call("broken"), "failed", "the server"),
    "own cancellation": (failing_async(asyncio.CancelledError()), call("broken"), "failed", "cancelled"),
    "exit": (failing(SystemExit(3)), call("broken"), "failed", "SystemExit: 3"),
    "exit, async": (failing_async(SystemExit(3)), call("broken"), "failed", "SystemExit: 3"),
    "approval, never enough": (failing(ApprovalRequired()), call("broken"), "failed", "`ctx.tool_call_approved` says"),
    "deferred call": (failing_async(CallDeferred()), call("broken"), "failed", "PydanticAI's CallDeferred"),
    "schema, missing": (Query(), call("query"), "refused", "'sql' is a required property"),
    "schema, wrong": (Query(), call("query", sql="x", limit=0), "refused", "limit: 0 is less than the minimum of 1"),
    "schema, extra": (Query(), call("query", sql="x", y=1), "refused", "Additional properties are not allowed"),
    "schema, a list": (Query(), call("query", "[1]"), "refused", "must be a JSON object"),
    "schema, text": (Query(), call("query", '"x"'), "refused", "must be a JSON object"),
    "schema, malformed": (Query(), call("query", '{"sql":'), "refused", "invalid arguments for query"),
    "from_schema, wrong": (FROM_SCHEMA, call("raw", n="one"), "refused", "'one' is not of type 'integer'"),
    "from_schema, a list": (FROM_SCHEMA, call("raw", "[1]"), "refused", "must be a JSON object"),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("case", list(CASES))
def test_a_failing_call_is_one_failed_result_and_the_run_continues(case: str) -> None:
    tool, asked, status, text = CASES[case]
    tools = [tool] if tool is add else [add, tool]
    runtime = runtime_of(
        [agent("main", script([call("add", a=1, b=1), asked, call("add", a=2, b=2)], "fin"), tools=tools)]
    )
    ear = heard(runtime, "tool_result")

    result = carry_out(runtime)

    assert (result.status, result.output) == ("completed", "fin")
    strict(result.messages)
    results = results_of(result.messages)
    assert [outcome for _, outcome, _ in results] == ["success", "failed", "success"]
    assert [text for _, _, text in results][::2] == ["2", "4"]
    assert results[1][0] == asked.tool_call_id
    assert text in results[1][2]
    [event] = [event for event in ear.events if event.tool_call_id == asked.tool_call_id]
    assert event.status == status
    assert text in event.result


def test_five_failing_turns_in_a_row_exhaust_no_hidden_limit() -> None:
    kinds = [call("nope"), call("add", "[]"), call("broken"), call("add", a=1), call("nope", n=2)]
    spec = agent("main", script(*([one] for one in kinds), "fin"), tools=[add, failing(ModelRetry("again"))])

    result = run_spec(spec)

    assert result.output == "fin"
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["failed"] * 5
    strict(result.messages)


def test_forty_parallel_calls_are_answered_in_order() -> None:
    started = 0
    everybody = asyncio.Event()

    async def work(n: int) -> int:
        nonlocal started
        started += 1
        if started == 40:
            everybody.set()
        await everybody.wait()
        return n * n

    result = run_spec(agent("main", script([call("work", n=n) for n in range(40)], "fin"), tools=[work]))

    assert [int(text) for _, _, text in results_of(result.messages)] == [n * n for n in range(40)]
    strict(result.messages)


def test_duplicate_call_ids_are_renumbered() -> None:
    turns = [call("add", {"a": n, "b": 0}, "same") for n in range(3)] + [call("nope", {}, "same-2")]
    runtime = runtime_of([agent("main", script(turns, "fin"), tools=[add])])
    ear = heard(runtime)

    result = carry_out(runtime)

    ids = [one for one, _, _ in results_of(result.messages)]
    assert len(set(ids)) == 4
    assert ids[0] == "same"
    assert [text for _, _, text in results_of(result.messages)][:3] == ["0", "1", "2"]
    assert sorted(event.tool_call_id for event in ear.of("tool_result")) == sorted(ids)
    strict(result.messages)


@each_row("own", ["x", ""])
def test_an_id_that_a_model_gives_again_is_renumbered(own: str) -> None:
    turns = [[call("add", {"a": n, "b": n}, own), call("add", {"a": n, "b": 9}, "x-3")] for n in range(3)]
    again = [call("add", {"a": 7, "b": 7}, own)]
    runtime = runtime_of([agent("main", script(*turns, "fin"), tools=[add])])
    ear = heard(runtime)

    first = carry_out(runtime)
    second = carry_out(runtime_of([agent("main", script(again, "fin"), tools=[add])]), messages=first.messages)

    results = results_of(second.messages)
    ids = [call_id for call_id, _, _ in results]
    assert [text for _, _, text in results] == ["0", "9", "2", "10", "4", "11", "14"]
    assert len(set(ids)) == 7
    assert "" not in ids
    assert ids[:2] == [own or "call-1", "x-3"]
    assert [event.tool_call_id for event in ear.of("tool_call")] == ids[:6]
    strict(second.messages)


def test_calls_of_a_loop_that_never_run_have_ids_of_their_own() -> None:
    turn = [call("add", {"a": 1, "b": 1}, "x"), call("add", {"a": 2, "b": 2}, "x")]

    result = carry_out(runtime_of([agent("main", script(turn), tools=[add])], loop_threshold=1))

    assert result.status == "limited"
    assert [call_id for call_id, _, _ in results_of(result.messages)] == ["x", "x-2"]
    strict(result.messages)


def test_a_valid_call_of_a_json_schema_tool_runs() -> None:
    spec = agent(
        "main", script([call("query", sql="select 1"), call("raw", '{"n": 3}')], "fin"), tools=[Query(), FROM_SCHEMA]
    )

    assert [text for _, _, text in results_of(run_spec(spec).messages)] == ["{'sql': 'select 1'}", "got {'n': 3}"]


class Anything(BaseHTTPRequestHandler):
    """Serves a schema that allows everything, and records the requests."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Don't log."""


@pytest.mark.filterwarnings("ignore")
def test_a_schema_that_cannot_be_checked_refuses_the_call_and_fetches_nothing() -> None:
    server = HTTPServer(("127.0.0.1", 0), Anything)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()

    class Remote(Query):
        parameters: ClassVar[Mapping[str, Any]] = {
            "type": "object",
            "properties": {"sql": {"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"}},
        }

    class Wrong(Query):
        name = "wrong"
        parameters: ClassVar[Mapping[str, Any]] = {"type": "object", "properties": {"sql": {"pattern": "("}}}

    spec = agent("main", script([call("query", sql="x"), call("wrong", sql="x")], "fin"), tools=[Remote(), Wrong()])
    try:
        result = run_spec(spec)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    assert Anything.asked == []
    assert result.output == "fin"
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["failed", "failed"]


@pytest.mark.parametrize("error", [ValueError("boom"), OSError("disk")], ids=repr)
def test_on_tool_error_raise_ends_the_run(error: Exception) -> None:
    runtime = runtime_of(
        [agent("main", script([call("broken"), call("add", a=1, b=1)], "fin"), tools=[failing(error), add])],
        on_tool_error="raise",
    )

    result = carry_out(runtime)

    assert isinstance(result.error, ToolFailedError)
    assert str(error) in str(result.error)
    assert result.error.agent_path == "main"
    assert result.status == "failed"
    strict(result.messages)


@pytest.mark.parametrize(
    "error", [ToolError("try B"), ModelRetry("try B"), ToolFailed("try B")], ids=lambda error: type(error).__name__
)
def test_an_error_meant_for_the_model_does_not_end_the_run(error: Exception) -> None:
    result = run_spec(
        agent("main", script([call("broken")], "fin"), tools=[failing_async(error)]), on_tool_error="raise"
    )

    assert result.output == "fin"
    assert results_of(result.messages)[0][1:] == ("failed", "try B")


def test_on_tool_error_raise_in_a_nested_agent_ends_the_whole_run() -> None:
    inner = agent("inner", script([call("broken")], "x"), tools=[failing(ValueError("deep"))])
    runtime = runtime_of(
        [agent("main", script([call("inner", input="go")], "fin"), toolsets=[inner]), inner], on_tool_error="raise"
    )

    result = carry_out(runtime)

    assert isinstance(result.error, ToolFailedError)
    assert result.error.agent_path == "main/inner"
    strict(result.messages)
    strict(result.calls[0].messages)


@pytest.mark.parametrize(
    ("tools", "asked"),
    [
        ([failing(ValueError("a" * LARGE))], call("broken")),
        ([failing(ToolError("a" * LARGE))], call("broken")),
        ([Query()], call("query", limit="a" * LARGE)),
    ],
    ids=["exception", "tool error", "invalid argument"],
)
def test_a_huge_failure_is_truncated_too(tools: list[Any], asked: Any) -> None:
    result = run_spec(agent("main", script([asked], "fin"), tools=tools), max_result_bytes=3000)

    [(_, outcome, text)] = results_of(result.messages)
    assert outcome == "failed"
    assert len(text) < 3300


def test_a_tool_may_exhaust_the_stack() -> None:
    def deep() -> str:
        def down(n: int) -> int:
            return down(n + 1)

        return str(down(0))

    result = run_spec(agent("main", script([call("deep")], "fin"), tools=[deep]))

    assert "RecursionError" in results_of(result.messages)[0][2]


def test_a_childs_failure_reaches_its_parent_with_path_and_reason() -> None:
    broken = agent("broken", script(ValueError("no weights")))
    stuck = agent("stuck", script([call("stuck_tool")]), tools=[failing_async(ToolError("x"))], loop_threshold=2)
    main = agent("main", script([call("broken", input="a"), call("stuck", input="b")], "fin"), toolsets=[broken, stuck])

    result = carry_out(runtime_of([main, broken, stuck]))

    assert result.output == "fin"
    assert [outcome for _, outcome, _ in results_of(result.messages)] == ["failed", "failed"]
    texts = [text for _, _, text in results_of(result.messages)]
    assert texts[0].startswith("agent main/broken failed: ")
    assert "no weights" in texts[0]
    assert texts[1].startswith("agent main/stuck failed: ")
    assert [(error.type, error.agent_path) for error in result.errors] == [
        ("ProviderError", "main/broken"),
        ("LoopError", "main/stuck"),
    ]
    assert all(
        isinstance(call_record.error, object) and call_record.status != "completed" for call_record in result.calls
    )


def test_a_failure_that_the_run_did_not_survive_is_listed_once() -> None:
    inner = agent("inner", script(ValueError("gone")))

    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("inner", "x")

    result = carry_out(runtime_of([inner], main))

    assert isinstance(result.error, RunError)
    assert [error.type for error in result.errors] == ["ProviderError"]
    assert result.errors[0].agent_path == "main/inner"


def test_an_unknown_tools_refusal_names_only_what_the_model_may_see() -> None:
    desk = Toolkit("desk")

    @desk.tool(enables_states=["in"])
    def login() -> str:
        return "in"

    @desk.tool(required_states=["in"])
    def close() -> str:
        return "closed"

    model = script(call("nope"), call("login"), call("nope"), "done")
    runtime = runtime_of([agent("main", model, tools=[add], toolsets=[desk])])
    result = carry_out(runtime)

    texts = [text for _, outcome, text in results_of(result.messages) if "unknown" in text]
    assert texts == ["unknown tool 'nope'; available: add, login", "unknown tool 'nope'; available: add, close, login"]
    assert [names.split(": ")[1].split(", ") for names in texts] == [sorted(asked.tools) for asked in model.asked[::2]]
