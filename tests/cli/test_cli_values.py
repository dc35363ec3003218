"""Values on the command line that are too large, of the wrong type, or name nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_processes import run_forked, run_many

ENTRY = """\
from enum import Enum
from pathlib import Path
from typing import Literal
from pydantic import Field, SecretStr
from llm_do import AgentArgs


class Size(str, Enum):
    one = "1"


class Order(AgentArgs):
    code: Literal["1", "2"] = "1"
    size: Size | None = None
    path: Path = Path("x")
    secret: SecretStr = SecretStr("")
    number: int = 0
    names: list[str] = []
    zip_: str = Field("", alias="zip")
    anything: object = None
"""
AGENT = "---\nname: main\nmodel: test\ninput_model_ref: order.py:Order\n---\nHelp.\n"
MANIFEST = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["order.py"]}


@pytest.fixture
def order(project: Callable[..., Path]) -> Path:
    return project(agent=AGENT, manifest=json.dumps(MANIFEST), **{"order.py": ENTRY})


@pytest.mark.slow
def test_a_field_is_parsed_as_json_only_where_its_type_accepts_it(order: Path) -> None:
    fields = {
        "code=2": ("code", "2"),
        "size=1": ("size", "1"),
        "path=123": ("path", "123"),
        "secret=123": ("secret", "**********"),
        "number=3": ("number", 3),
        'names=["a"]': ("names", ["a"]),
        "zip=007": ("zip_", "007"),
        "anything=3": ("anything", 3),
        "anything=NaN": ("anything", "NaN"),
    }

    ended = run_many({text: (["run", "--dry-run", "--output", "json", "--field", text], order, b"") for text in fields})

    for text, (name, value) in fields.items():
        assert ended[text].json["input"][name] == value, text


def test_a_field_named_by_its_attribute_instead_of_its_alias_is_refused(order: Path) -> None:
    ended = run_forked("run", "--field", "zip_=007", cwd=order)

    assert (ended.code, ended.err) == (2, "error: the entry's input has no field 'zip_'. Did you mean `zip`?\n")


@pytest.mark.parametrize("attachments", ["foo", 5, None])
def test_attachments_must_be_a_list(project: Callable[..., Path], attachments: object) -> None:
    payload = json.dumps({"input": "a", "attachments": attachments})
    ended = run_forked("run", "--dry-run", "--input-json", payload, "--attach", "tools.py", cwd=project())

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        f"error: the input's attachments are {json.dumps(attachments)}, and --attach adds to a list."
    )


def test_numbers_can_be_arbitrarily_large(project: Callable[..., Path]) -> None:
    root, huge = project('- {text: "answer"}\n- {text: "again"}'), "9" * 400
    calls = {
        "steps": ["run", "hi", "--max-steps", huge, "--max-depth", huge, "--thread", "t"],
        "set": ["threads", "set", "t", f"history_limit={huge}"],
        "limited": ["run", "hi", "--thread", "t"],
        "runs": ["runs", "list", "--limit", huge],
        "thread": ["threads", "show", "t", "--limit", huge],
    }

    ended = run_many({name: (args, root, b"") for name, args in calls.items()})

    assert {name: (each.code, each.err) for name, each in ended.items()} == dict.fromkeys(calls, (0, ""))
    assert (ended["steps"].out, ended["limited"].out) == ("answer\n", "again\n")


@pytest.mark.parametrize("option", ["--thread", "--user", "--entry", "--model"])
@pytest.mark.parametrize("command", ["run", "chat"])
def test_an_empty_name_is_refused(project: Callable[..., Path], command: str, option: str) -> None:
    root = project()
    ended = run_forked(command, ".", "hi", option, "", cwd=root)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {option} is empty. Leave it out ")
    assert not (root / ".llm-do").exists()


def test_impossible_paths_are_reported_like_missing_files(project: Callable[..., Path]) -> None:
    root = project()
    long, homeless = "a" * 300, "~unknown-user/x"
    ended = run_many(
        {path: (["run", "hi", "--attach", path], root, b"") for path in (long, homeless)}
        | {"init": (["init", homeless], root, b"")}
    )

    hint = "Paths are relative to the current folder; - is stdin."
    assert ended[long].err == f"error: can't attach {long!r}: File name too long. {hint}\n"
    assert ended[homeless].err == f"error: can't attach {homeless!r}: No such file or directory. {hint}\n"
    assert (root / homeless / "project.json").exists()


def test_chat_messages_may_look_like_impossible_paths(project: Callable[..., Path]) -> None:
    root = project("- text: one\n- text: two\n- text: three")
    lines = f"hi @~unknown-user\nhi @{'a' * 300}\n/save a\0b\n/save ~unknown-user/x\nbye\n"

    ended = run_forked("chat", cwd=root, stdin=lines.encode())

    assert (ended.code, ended.out) == (0, "one\ntwo\nthree\n")
    assert ended.err.splitlines() == [
        "error: a\\x00b can't be written: embedded null byte. Name another file.",
        "error: ~unknown-user/x can't be written: No such file or directory. Name another file.",
    ]
