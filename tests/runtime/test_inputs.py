"""A run's inputs: values that its input model accepts, and attached files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import BinaryContent

from llm_do import (
    AgentArgs,
    Attachment,
    CallContext,
    InputError,
    PromptInput,
    Runtime,
)
from llm_do.runtime.call.prompt import ATTACHMENT_LIMIT
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, heard, project_of, run_spec, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import each_row


def echo() -> Any:
    """A model that repeats its prompt."""
    return script(lambda messages, info: str(messages[-1].parts[-1].content))


class Pitch(AgentArgs):
    company: str
    stars: int = 3

    def prompt_messages(self) -> list[Any]:
        return [f"Judge {self.company}: {self.stars}"]


class Plain(BaseModel):
    n: int


# -- input


@each_row(
    "given, named",
    [
        ({"company": 3}, "company"),
        ({"stars": 1}, "company"),
        ({"company": "a", "stars": "many"}, "stars"),
        ("text", "company"),
        (7, "object"),
    ],
)
def test_invalid_input_names_the_field_and_runs_nothing(given: Any, named: str) -> None:
    model = script("x")
    runtime = runtime_of([agent("main", model, input_model=Pitch)])
    ear = heard(runtime)

    with pytest.raises(InputError, match=named) as error:
        asyncio.run(runtime.run(given))

    assert (error.value.status, error.value.exit_code) == ("invalid", 2)
    assert "company: str" in str(error.value.hint)
    assert model.asked == []
    assert ear.events == []


class Loose(AgentArgs):
    data: Any


def test_input_that_cannot_be_serialized_runs_nothing() -> None:
    ring: list[Any] = []
    ring.append(ring)
    inner = agent("inner", script("x"), input_model=Loose)
    runtime = runtime_of([inner])
    ear = heard(runtime)

    async def main(input: PromptInput, ctx: CallContext) -> Any:
        return await ctx.call("inner", {"data": ring})

    with pytest.raises(InputError, match="the input of inner can't be written as JSON data"):
        carry_out(runtime, {"data": ring})
    nested = carry_out(runtime_of([inner], main))

    assert ear.events == []
    assert nested.status == "invalid"
    assert [error.agent_path for error in nested.errors] == ["main/inner"]
    assert inner.model.asked == []


def test_text_for_an_input_without_text_explains_how_to_pass_fields() -> None:
    with pytest.raises(InputError, match="company") as error:
        run_spec(agent("main", echo(), input_model=Pitch), "text")

    assert str(error.value.hint).endswith("; on the command line, pass them with --field NAME=VALUE.")


def test_unknown_fields_are_named() -> None:
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

    results = results_of(result.messages)
    assert [outcome for _, outcome, _ in results] == ["failed", "success"]
    assert "company" in results[0][2]
    assert results[1][2] == "Judge A: 5"
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


def test_project_files_are_attached_to_the_text(root: Path) -> None:
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
def test_files_outside_the_project_are_refused_before_anything_is_sent(root: Path, path: str) -> None:
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


@each_row(
    "data, kind",
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0...", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"plain words", "text/plain"),
        (b"\xff\xfe\x00", "application/octet-stream"),
    ],
)
def test_a_file_without_a_telling_name_is_known_by_its_first_bytes(data: bytes, kind: str, root: Path) -> None:
    (root / "scan").write_bytes(data)
    _, [asked] = attached(root, "scan")

    assert asked.prompt[1].media_type == kind


def test_bytes_with_a_media_type_are_sent_unchanged(root: Path) -> None:
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


# -- nothing


class Silent(AgentArgs):
    lines: list[str]

    def prompt_messages(self) -> list[Any]:
        return list(self.lines)


@each_row("given", ["", " \n\t", {"input": ""}, {"input": "", "attachments": ["a.txt"]}])
def test_an_empty_input_is_refused_before_anything_runs(given: Any) -> None:
    model = script("x")

    with pytest.raises(InputError, match="input: it is empty"):
        run_spec(agent("main", model), given)
    assert model.asked == []


def test_an_empty_input_of_a_called_agent_is_refused() -> None:
    helper = script("x")

    async def main(input: PromptInput, ctx: CallContext) -> str:
        try:
            await ctx.call("helper", "")
        except InputError as error:
            return error.message
        return "called"

    result = carry_out(runtime_of([agent("helper", helper)], main))
    assert result.output == "input does not fit PromptInput: input: it is empty"
    assert helper.asked == []


def test_a_model_that_calls_an_agent_with_nothing_is_told() -> None:
    helper = script("x")
    specs = [agent("main", script(call("helper", input=" "), "done"), toolsets=["helper"]), agent("helper", helper)]

    result = carry_out(runtime_of(specs))
    assert "it is empty" in results_of(result.messages)[0][2]
    assert helper.asked == []


@pytest.mark.parametrize("lines", [[], [""], [" ", "\n"]])
def test_an_empty_prompt_of_an_input_model_is_refused(lines: list[str]) -> None:
    model = script("x")
    result = run_spec(agent("main", model, input_model=Silent), {"lines": lines})

    assert (result.status, result.errors[0].message) == ("invalid", "the prompt of Silent is empty")
    assert model.asked == []
