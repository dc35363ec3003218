"""What a run begins with, what it takes, and what comes back: functions, agents, entry objects, inputs, outputs."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.messages import BinaryContent, ModelMessagesTypeAdapter, ModelResponse

from llm_do import (
    AgentArgs,
    AgentEntry,
    Attachment,
    CallContext,
    EntryError,
    FunctionEntry,
    InputError,
    ModelUnavailableError,
    NullModel,
    PromptInput,
    RunError,
    Runtime,
    Tool,
    ToolError,
    UsageError,
)
from llm_do.runtime.start import ATTACHMENT_LIMIT
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, project_of, run_spec, runtime_of
from tests.support.scripted import call, script


def echo() -> Any:
    """A model that says what it was asked."""
    return script(lambda messages, info: str(messages[-1].parts[-1].content))


class Pitch(AgentArgs):
    company: str
    stars: int = 3

    def prompt_messages(self) -> list[Any]:
        return [f"Judge {self.company}: {self.stars}"]


class Plain(BaseModel):
    n: int


@dataclass
class Point:
    x: int
    y: int


# -- functions


def test_an_async_entry_calls_others_by_name() -> None:
    async def main(input: PromptInput, ctx: CallContext) -> str:
        first = await ctx.call("a", {"input": input.input})
        return await ctx.call_agent("b", first)

    result = carry_out(runtime_of([agent("a", echo()), agent("b", script("done"))], main), "hello")

    assert (result.status, result.output) == ("completed", "done")
    assert result.messages == []
    assert [record.path for record in result.calls] == ["main/a", "main/b"]
    assert [len(record.messages) for record in result.calls] == [2, 2]


def test_a_sync_entry_runs_in_a_worker_and_may_return_a_call() -> None:
    seen: list[str] = []

    def main(input: PromptInput, ctx: CallContext) -> Any:
        seen.append(threading.current_thread().name)
        return ctx.call("a", input.input)

    assert carry_out(runtime_of([agent("a", echo())], main), "hello").output == "hello"
    assert seen != [threading.current_thread().name]
    assert carry_out(runtime_of([], lambda input, ctx: input.input.upper()), "quiet").output == "QUIET"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "text"),
        (None, None),
        ({"a": [1]}, {"a": [1]}),
        (7, 7),
        (Plain(n=1), {"n": 1}),
        (Point(1, 2), {"x": 1, "y": 2}),
        ((1, "a"), [1, "a"]),
        (b"\x00\xff", "AP8="),
        (Path("x"), "x"),
    ],
    ids=repr,
)
def test_an_entry_may_return_anything(value: Any, shown: Any) -> None:
    async def main(input: Any, ctx: CallContext) -> Any:
        return value

    result = carry_out(runtime_of([], main))

    assert result.output == value
    assert json.loads(json.dumps(result.to_dict()))["output"] == shown


def project_module(tmp_path: Path, text: str) -> ModuleType:
    """A module of the project's own, its file below the project root."""
    path = tmp_path / "flow.py"
    path.write_text(text)
    module = ModuleType("flow")
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102
    return module


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_an_entrys_error_says_file_and_line(tmp_path: Path, kind: str) -> None:
    module = project_module(tmp_path, f"def deep():\n    return 1 / 0\n\n{kind} main(input, ctx):\n    return deep()\n")
    result = carry_out(Runtime(project_of([], module.main, root=tmp_path)))

    assert isinstance(result.error, EntryError)
    assert (result.error.file, result.error.line) == ("flow.py", 2)
    assert isinstance(result.error.__cause__, ZeroDivisionError)
    assert (result.status, result.exit_code) == ("failed", 1)
    [record] = result.to_dict()["errors"]
    assert (record["type"], record["file"], record["line"]) == ("EntryError", "flow.py", 2)
    assert "ZeroDivisionError" in record["message"]


@pytest.mark.parametrize("error", [SystemExit(2), StopIteration(), StopAsyncIteration(), KeyError("x")], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_whatever_an_entry_raises_is_an_entry_error(error: BaseException, kind: str) -> None:
    def main(input: Any, ctx: CallContext) -> None:
        raise error

    async def amain(input: Any, ctx: CallContext) -> None:
        raise error

    result = carry_out(runtime_of([], main if kind == "sync" else amain))

    assert isinstance(result.error, EntryError)
    assert type(error).__name__ in result.error.message or "StopIteration" in result.error.message


def test_an_entry_may_handle_a_childs_failure() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        try:
            return await ctx.call("a", "x")
        except RunError as error:
            return f"handled: {error.agent_path}"

    result = carry_out(runtime_of([agent("a", script(ValueError("x")))], main))

    assert (result.status, result.output) == ("completed", "handled: main/a")
    assert [error.agent_path for error in result.errors] == ["main/a"]


def test_an_unknown_name_proposes_the_nearest() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        return await ctx.call("analyser", "x")

    result = carry_out(runtime_of([agent("analyzer", echo())], main))

    assert isinstance(result.error, RunError)
    assert "analyser" in result.error.message
    assert "analyzer" in str(result.error.hint)


def test_an_exported_function_is_called_with_validated_arguments() -> None:
    def add(a: int, b: int = 2) -> int:
        return a + b

    def fails(n: int) -> None:
        raise ToolError(f"no {n}")

    async def main(input: Any, ctx: CallContext) -> Any:
        said: list[Any] = [await ctx.call("add", {"a": "1"}), await ctx.call("upper", "one field")]
        for name, given in (("add", {"b": 1}), ("add", ["a"]), ("add", None), ("fails", {"n": 1})):
            try:
                await ctx.call(name, given)
            except (InputError, ToolError) as error:
                said.append(f"{type(error).__name__}: {error}")
        return said

    result = carry_out(runtime_of([], main, tools={"add": add, "upper": _upper, "fails": fails}))

    assert result.output[:2] == [3, "ONE FIELD"]
    assert result.output[2].startswith("InputError: input does not fit add: a: Field required")
    assert [text.partition(":")[0] for text in result.output[2:]] == ["InputError"] * 3 + ["ToolError"]
    assert [record.path for record in result.calls] == ["main/add", "main/upper", "main/fails"]


def _upper(text: str) -> str:
    return text.upper()


def test_a_json_schema_tool_called_from_python_is_validated_too() -> None:
    class Query(Tool):
        name = "query"
        parameters: ClassVar[Mapping[str, Any]] = {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }

        async def execute(self, **kwargs: Any) -> Any:
            return kwargs["n"]

    async def main(input: Any, ctx: CallContext) -> Any:
        good = await ctx.call("query", {"n": 1})
        with pytest.raises(InputError, match="integer"):
            await ctx.call("query", {"n": "one"})
        return good

    assert carry_out(runtime_of([], main, tools={"query": Query()})).output == 1


# -- entry objects and names


def test_entry_objects_are_run_like_declared_entries() -> None:
    spec = agent("helper", echo())
    runtime = runtime_of([agent("main", script("main"))])

    async def both() -> tuple[Any, Any]:
        async def work(input: PromptInput, ctx: CallContext) -> str:
            return f"{input.input} at depth {ctx.depth}"

        return await runtime.run_entry(AgentEntry(spec), "hi"), await runtime.run_entry(FunctionEntry(work), "hi")

    first, second = asyncio.run(both())
    assert (first.output, second.output) == ("hi", "hi at depth 0")
    assert len(first.messages) == 2


class Question(PromptInput):
    topic: str = "weather"


def test_a_function_entry_says_what_it_takes() -> None:
    runtime = runtime_of([agent("main", script("main"))])
    entry = FunctionEntry(lambda input, ctx: input.topic, "ask", input_model=Question)

    assert runtime.run_sync({"input": "hi", "topic": "news"}, entry=entry).output == "news"


def test_one_agent_entry_can_be_run_many_times_at_once() -> None:
    entry = AgentEntry(agent("helper", echo()))
    runtime = runtime_of([agent("main", script("main"))])

    async def many() -> list[Any]:
        return await asyncio.gather(*(runtime.run(f"say {n}", entry=entry) for n in range(10)))

    for n, result in enumerate(asyncio.run(many())):
        assert result.output == f"say {n}"
        assert len(result.messages) == 2
        assert str(result.messages[0].parts[-1].content) == f"say {n}"
    again = asyncio.run(runtime.run("more", entry=entry, messages=result.messages))
    assert len(again.messages) == 4


def test_an_entry_agent_runs_at_depth_one_and_a_function_at_zero() -> None:
    depths: dict[str, Any] = {}

    def look(name: str, ctx: CallContext) -> None:
        depths[name] = (ctx.depth, ctx.path, ctx.run_id != "", ctx.thread_id, ctx.user_id)

    def peek(ctx: RunContext[CallContext]) -> str:
        look("agent", ctx.deps)
        return "seen"

    def main(input: Any, ctx: CallContext) -> str:
        look("function", ctx)
        assert isinstance(ctx.frame.config.model, NullModel)
        assert ctx.frame.config.active_toolsets == ()
        return "x"

    carry_out(runtime_of([agent("main", script([call("peek")], "x"), tools=[peek])]), thread_id="t", user_id="u")
    carry_out(runtime_of([], main))
    assert depths == {"agent": (1, "main", True, "t", "u"), "function": (0, "main", True, None, None)}


def test_another_entry_is_chosen_by_name() -> None:
    def shout(text: str) -> str:
        return text.upper()

    def broken(text: str) -> str:
        raise ValueError("no")

    runtime = runtime_of(
        [agent("main", script("main")), agent("other", echo())], tools={"shout": shout, "broken": broken}
    )

    assert carry_out(runtime, "x").output == "main"
    assert carry_out(runtime, "x", entry="other").output == "x"
    assert carry_out(runtime, {"text": "loud"}, entry="shout").output == "LOUD"
    failed = carry_out(runtime, {"text": "loud"}, entry="broken")
    assert isinstance(failed.error, EntryError)
    assert failed.status == "failed"
    with pytest.raises(UsageError, match="othr") as error:
        carry_out(runtime, "x", entry="othr")
    assert "other" in str(error.value.hint)


def test_a_null_model_answers_nothing() -> None:
    async def ask() -> None:
        await NullModel().request([], None, None)  # type: ignore[arg-type]

    assert NullModel().model_name == "null"
    with pytest.raises(ModelUnavailableError):
        asyncio.run(ask())


def test_nothing_is_inherited_from_the_caller() -> None:
    inner = agent("inner", script("in"))
    model = inner.model
    main = agent(
        "main", script([call("inner", input="only this")], "fin"), toolsets=[inner], instructions="Secret plan."
    )
    run = carry_out(runtime_of([main, inner]), "the prompt")

    [asked] = model.asked
    assert asked.prompt == "only this"
    assert asked.tools == []
    assert "Secret" not in str(asked.messages)
    assert "the prompt" not in str(asked.messages)
    assert run.output == "fin"


# -- input


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"company": 3}, "company"),
        ({"stars": 1}, "company"),
        ({"company": "a", "stars": "many"}, "stars"),
        ("text", "company"),
        (7, "object"),
    ],
)
def test_input_that_does_not_fit_names_the_field_and_runs_nothing(given: Any, named: str) -> None:
    model = script("x")
    runtime = runtime_of([agent("main", model, input_model=Pitch)])
    ear = heard(runtime)

    with pytest.raises(InputError, match=named) as error:
        asyncio.run(runtime.run(given))

    assert (error.value.status, error.value.exit_code) == ("invalid", 2)
    assert "company: str" in str(error.value.hint)
    assert model.asked == []
    assert ear.events == []


def test_text_for_an_input_without_text_is_told_how_fields_are_given() -> None:
    with pytest.raises(InputError, match="company") as error:
        run_spec(agent("main", echo(), input_model=Pitch), "text")

    assert str(error.value.hint).endswith("; on the command line, give them with --field NAME=VALUE.")


def test_fields_that_do_not_exist_are_named() -> None:
    with pytest.raises(InputError, match="atachments"):
        run_spec(agent("main", echo()), {"input": "x", "atachments": []})


def test_input_may_be_text_a_mapping_or_a_model() -> None:
    runtime = runtime_of([agent("main", echo(), input_model=Pitch)])
    for given in ({"company": "A"}, Pitch(company="A")):
        assert carry_out(runtime, given).output == "Judge A: 3"
    assert run_spec(agent("main", echo()), PromptInput(input="x")).output == "x"
    assert json.loads(run_spec(agent("main", echo(), input_model=Plain), {"n": 4}).output) == {"n": 4}


def test_missing_input_is_an_error_unless_there_is_a_default() -> None:
    with pytest.raises(InputError, match="needs an input"):
        run_spec(agent("main", echo()), None)
    project = project_of([agent("main", echo())])
    project = replace(project, entry=replace(project.entry, args={"input": "default"}))
    assert carry_out(Runtime(project), None).output == "default"
    assert carry_out(Runtime(project), "given").output == "given"


def test_a_nested_agents_input_is_validated_by_its_own_model() -> None:
    inner = agent("inner", echo(), input_model=Pitch)
    main = agent(
        "main", script([call("inner", company=1), call("inner", company="A", stars=5)], "fin"), toolsets=[inner]
    )
    result = carry_out(runtime_of([main, inner]))

    told = results_of(result.messages)
    assert [outcome for _, outcome, _ in told] == ["failed", "success"]
    assert "company" in told[0][2]
    assert told[1][2] == "Judge A: 5"
    assert len(result.calls) == 1


# -- attachments


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project" / "docs").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "project"
    (root / "docs" / "note.txt").write_text("a note")
    (root / "photo.png").write_bytes(b"\x89PNG\r\n")
    (root / "data").write_bytes(b"\xff\xfe\x00")
    (root / "words").write_text("plain words")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


def attached(root: Path, *paths: str, **fields: Any) -> tuple[Any, Any]:
    model = script("seen")
    result = carry_out(
        Runtime(project_of([agent("main", model, **fields)], root=root)), {"input": "look", "attachments": list(paths)}
    )
    return result, model.asked


def test_files_of_the_project_go_with_the_text(root: Path) -> None:
    result, [asked] = attached(root, "docs/note.txt", "photo.png", "data", "words")

    text, *files = asked.prompt
    assert text == "look"
    assert [(item.media_type, item.data) for item in files] == [
        ("text/plain", b"a note"),
        ("image/png", b"\x89PNG\r\n"),
        ("application/octet-stream", b"\xff\xfe\x00"),
        ("text/plain", b"plain words"),
    ]
    assert result.output == "seen"


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "docs/../../secret.txt", "link.txt", "/etc/hostname", "missing.txt", "docs", "~/x", "a\0b", ""],
)
def test_files_elsewhere_are_refused_before_anything_is_sent(root: Path, path: str) -> None:
    result, asked = attached(root, "docs/note.txt", path)

    assert isinstance(result.error, InputError)
    assert (result.status, result.exit_code) == ("invalid", 2)
    assert asked == []
    assert "secret" not in str(result.to_dict()["messages"])


def test_a_huge_file_is_refused(root: Path) -> None:
    with (root / "huge.bin").open("wb") as file:
        file.truncate(ATTACHMENT_LIMIT + 1)
    result, asked = attached(root, "huge.bin")

    assert isinstance(result.error, InputError)
    assert "huge.bin" in result.error.message
    assert asked == []


def test_a_nested_agents_attachments_are_checked_too(root: Path) -> None:
    inner = agent("inner", script("seen"))
    main = agent("main", script([call("inner", input="x", attachments=["../secret.txt"])], "fin"), toolsets=[inner])
    result = carry_out(Runtime(project_of([main, inner], root=root)))

    assert result.output == "fin"
    assert results_of(result.messages)[0][1] == "failed"
    assert "secret.txt" in results_of(result.messages)[0][2]
    assert inner.model.asked == []


def test_bytes_at_hand_and_a_media_type_are_taken_as_given(root: Path) -> None:
    class Shown(AgentArgs):
        def prompt_messages(self) -> list[Any]:
            return [
                "see",
                Attachment("x.bin", data=b"abc", media_type="audio/wav"),
                Attachment("photo.png", media_type="image/webp"),
            ]

    model = script("seen")
    carry_out(Runtime(project_of([agent("main", model, input_model=Shown)], root=root)), {})

    assert [(item.media_type, len(item.data)) for item in model.asked[0].prompt[1:]] == [
        ("audio/wav", 3),
        ("image/webp", 6),
    ]
    assert isinstance(model.asked[0].prompt[1], BinaryContent)


# -- instructions


def instructions_of(spec: Any, input: Any = "go", **fields: Any) -> str | None:
    run_spec(spec, input, **fields)
    return spec.model.asked[0].info.instructions


async def _async_instructions(name: str) -> str:
    await asyncio.sleep(0)
    return f"async {name}"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("Text.", "Text."),
        ("", None),
        (lambda: "nothing", "nothing"),
        (lambda name: f"I am {name}", "I am main"),
        (lambda ctx: f"at {ctx.path} {ctx.depth}", "at main 1"),
        (_async_instructions, "async main"),
    ],
)
def test_instructions_are_text_or_a_function(given: Any, sent: str | None) -> None:
    assert instructions_of(agent("main", script("x"), instructions=given)) == sent


def test_a_context_is_known_by_its_annotation_too() -> None:
    def told(where: CallContext) -> str:
        return where.path

    assert instructions_of(agent("main", script("x"), instructions=told)) == "main"


def test_instructions_that_raise_are_the_projects_error(tmp_path: Path) -> None:
    module = project_module(tmp_path, "def told():\n    raise KeyError('x')\n")
    spec = agent("main", script("x"), instructions=module.told)
    result = carry_out(Runtime(project_of([spec], root=tmp_path)))

    assert isinstance(result.error, EntryError)
    assert (result.error.file, result.error.line, result.error.agent_path) == ("flow.py", 2, "main")
    assert result.status == "failed"


def test_a_template_is_filled_once_from_the_input() -> None:
    class Letter(AgentArgs):
        name: str
        body: Any = None

    spec = agent(
        "main",
        script("x"),
        input_model=Letter,
        template=True,
        instructions="Dear {{name}}, {{ body }} {name} {{{name}}}",
    )
    sent = instructions_of(spec, {"name": "{{body}}", "body": {"a": 1}})

    assert sent == 'Dear {{body}}, {"a": 1} {name} {{{body}}}'
    plain = agent("main", script("x"), instructions="Dear {{input}}")
    assert instructions_of(plain) == "Dear {{input}}"


def test_a_template_field_that_the_input_lacks_is_named() -> None:
    result = run_spec(agent("main", script("x"), template=True, instructions="Dear {{nobody}}"))

    assert isinstance(result.error, RunError)
    assert "nobody" in result.error.message


# -- output


SCHEMA = {
    "type": "object",
    "title": "Point",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
}


def answering(*replies: dict[str, Any]) -> Any:
    """A model that gives these structured answers, one after the other."""
    left = list(replies)

    def turn(messages: Any, info: Any) -> Any:
        return [call(info.output_tools[0].name, left.pop(0) if len(left) > 1 else left[0])]

    return script(turn)


@pytest.mark.parametrize(
    ("kind", "output"), [(Plain, Plain(n=1)), (Point, Point(1, 2)), (SCHEMA, {"x": 1, "y": 2}), (list[int], [1])]
)
def test_structured_output_is_validated_and_tried_again(kind: Any, output: Any) -> None:
    good = {Plain: {"n": 1}, Point: {"x": 1, "y": 2}}.get(kind) if isinstance(kind, type) else None
    reply = good or ({"response": [1]} if kind == list[int] else {"x": 1, "y": 2})
    bad = {"n": "x", "x": "no", "response": "no"}
    result = run_spec(agent("main", answering(bad, reply), output_type=kind))

    assert result.output == output
    assert type(result.output) is type(output)
    assert result.steps == 2
    strict(result.messages)


def test_a_structured_answer_reaches_a_calling_model_as_json() -> None:
    inner = agent("inner", answering({"x": 1, "y": 2}), output_type=Point)
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])

    assert results_of(carry_out(runtime_of([main, inner])).messages)[0][2] == '{"x": 1, "y": 2}'


def test_text_reaches_a_calling_model_and_code_verbatim() -> None:
    odd = '{"not": "parsed"}\n  [bold]x[/bold] \u202e é\n'
    inner = agent("inner", script(odd))
    main = agent(
        "main", script([call("inner", input="x")], lambda messages, info: results_of(messages)[0][2]), toolsets=[inner]
    )

    assert carry_out(runtime_of([main, inner])).output == odd


# -- settings and models


def test_settings_go_from_the_project_to_the_agent() -> None:
    model = script("x")
    spec = agent("main", model, model_settings={"top_p": 0.1, "base_url": "http://x"}, temperature=0.0, max_tokens=5)
    run_spec(spec, model_settings={"seed": 1, "top_p": 0.9})

    assert model.asked[0].settings == {"seed": 1, "top_p": 0.1, "temperature": 0.0, "max_tokens": 5}


def test_a_model_given_to_the_run_goes_before_the_agents() -> None:
    spec, other = agent("main", script("own")), script("given")

    assert carry_out(Runtime(project_of([spec]), model=other)).output == "given"
    assert carry_out(Runtime(project_of([spec]), model="test")).status == "completed"


def test_an_agent_without_any_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("LLM_DO"):
            monkeypatch.delenv(name)
    result = carry_out(Runtime(project_of([agent("main", "no-such-provider:x")])))

    assert isinstance(result.error, ModelUnavailableError)
    assert result.status == "provider_failed"
    assert result.error.agent_path


# -- conversations


def test_a_conversation_goes_on_from_a_result_and_never_changes_it() -> None:
    model = script("answer")
    runtime = runtime_of([agent("main", model)])
    first = asyncio.run(runtime.run("one"))
    before = list(first.messages)
    second = asyncio.run(runtime.run("two", execution_context=first.execution_context))
    third = asyncio.run(runtime.run("three", messages=second.messages))

    assert first.messages == before
    assert list(first.execution_context.messages) == before
    assert second.messages[:2] == before
    assert len(third.messages) == 6
    assert [sum(isinstance(message, ModelResponse) for message in asked.messages) for asked in model.asked] == [0, 1, 2]


def test_a_nested_agent_starts_fresh_each_time() -> None:
    inner = agent("inner", script("in"))
    main = agent("main", script([call("inner", input="1")], [call("inner", input="2")], "fin"), toolsets=[inner])
    carry_out(runtime_of([main, inner]))

    assert [len(asked.messages) for asked in inner.model.asked] == [1, 1]


def test_a_history_survives_json() -> None:
    runtime = runtime_of([agent("main", script([call("up", text="a")], "fin"), tools=[_named_up])])
    first = asyncio.run(runtime.run("one"))
    read = ModelMessagesTypeAdapter.validate_python(json.loads(json.dumps(first.to_dict()))["messages"])

    assert asyncio.run(runtime.run("two", messages=read)).output == "fin"


def _named_up(text: str) -> str:
    return text.upper()


_named_up.__name__ = "up"
