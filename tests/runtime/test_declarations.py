"""What an agent declares: instructions, output, settings and model."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from llm_do import (
    AgentArgs,
    CallContext,
    EntryError,
    ModelUnavailableError,
    RunError,
    Runtime,
)
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, project_of, run_spec, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


class Plain(BaseModel):
    n: int


@dataclass
class Point:
    x: int
    y: int


def project_module(tmp_path: Path, text: str) -> ModuleType:
    """A module of the project, with its file below the project root."""
    path = tmp_path / "flow.py"
    path.write_text(text)
    module = ModuleType("flow")
    exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102
    return module


# -- instructions


def instructions_of(spec: Any, input: Any = "go", **fields: Any) -> str | None:
    run_spec(spec, input, **fields)
    return spec.model.asked[0].info.instructions


async def _async_instructions(name: str) -> str:
    await asyncio.sleep(0)
    return f"async {name}"


@each_row(
    "given, sent",
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


def test_a_context_parameter_is_recognized_by_its_annotation() -> None:
    def instruct(where: CallContext) -> str:
        return where.path

    assert instructions_of(agent("main", script("x"), instructions=instruct)) == "main"


def test_instructions_that_raise_are_reported_as_the_projects_error(tmp_path: Path) -> None:
    module = project_module(tmp_path, "def instruct():\n    raise KeyError('x')\n")
    spec = agent("main", script("x"), instructions=module.instruct)
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
    result = run_spec(agent("main", script("x"), template=True, instructions="Dear {{unknown}}"))

    assert isinstance(result.error, RunError)
    assert "unknown" in result.error.message


# -- output


SCHEMA = {
    "type": "object",
    "title": "Point",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
}


def answering(*replies: dict[str, Any]) -> Any:
    """A model that returns these structured answers in turn."""
    left = list(replies)

    def turn(messages: Any, info: Any) -> Any:
        return [call(info.output_tools[0].name, left.pop(0) if len(left) > 1 else left[0])]

    return script(turn)


@each_row("kind, output", [(Plain, Plain(n=1)), (Point, Point(1, 2)), (SCHEMA, {"x": 1, "y": 2}), (list[int], [1])])
def test_invalid_structured_output_is_retried(kind: Any, output: Any) -> None:
    good = {Plain: {"n": 1}, Point: {"x": 1, "y": 2}}.get(kind) if isinstance(kind, type) else None
    reply = good or ({"response": [1]} if kind == list[int] else {"x": 1, "y": 2})
    bad = {"n": "x", "x": "no", "response": "no"}
    result = run_spec(agent("main", answering(bad, reply), output_type=kind))

    assert result.output == output
    assert type(result.output) is type(output)
    assert result.steps == 2
    strict(result.messages)


def test_a_calling_model_receives_structured_output_as_json() -> None:
    inner = agent("inner", answering({"x": 1, "y": 2}), output_type=Point)
    main = agent("main", script([call("inner", input="x")], "fin"), toolsets=[inner])

    assert results_of(carry_out(runtime_of([main, inner])).messages)[0][2] == '{"x": 1, "y": 2}'


def test_models_and_code_receive_text_output_verbatim() -> None:
    odd = '{"not": "parsed"}\n  [bold]x[/bold] \u202e é\n'
    inner = agent("inner", script(odd))
    main = agent(
        "main", script([call("inner", input="x")], lambda messages, info: results_of(messages)[0][2]), toolsets=[inner]
    )

    assert carry_out(runtime_of([main, inner])).output == odd


# -- settings and models


def test_an_agents_settings_are_merged_over_the_projects() -> None:
    model = script("x")
    spec = agent("main", model, model_settings={"top_p": 0.1, "base_url": "http://x"}, temperature=0.0, max_tokens=5)
    run_spec(spec, model_settings={"seed": 1, "top_p": 0.9})

    assert model.asked[0].settings == {"seed": 1, "top_p": 0.1, "temperature": 0.0, "max_tokens": 5}


def test_the_runs_model_overrides_the_agents() -> None:
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
