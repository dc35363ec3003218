"""Cassettes: recorded over a real provider client, answered without one, and missed as soon as anything has changed."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from llm_do import Project, Runtime, UsageError
from llm_do.errors import CassetteMissError
from llm_do.testing import Played, play
from llm_do.testing.cassettes.files import player_of, recorder_for
from llm_do.testing.cassettes.recorder import write_cassette
from tests.support.openai_server import serve

TOOLS = '''
from typing import Annotated
import pathlib

def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b

def read_note() -> str:
    """Read the note."""
    return pathlib.Path(__file__).with_name("note.txt").read_text()

def place() -> str:
    """Where the project is."""
    return str(pathlib.Path(__file__).parent)

TOOLS = [multiply, read_note, place]
'''

LEAD = """---
name: lead
model: openai-chat:lead
model_settings: {temperature: 0.5}
tools: [multiply, read_note, place]
toolsets: [helper]
---
Answer briefly.
"""

HELPER = """---
name: helper
description: Helps the lead.
model: openai-chat:helper
---
Help with one thing.
"""

MANIFEST: dict[str, Any] = {
    "version": 1,
    "entry": {"agent": "lead"},
    "agent_files": ["*.agent"],
    "python_files": ["tools.py"],
    "approvals": {"allow": ["multiply", "read_note", "place"]},
    "runtime": {"retry_delay": 0},
}

SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "lead": [
        {"status": 429, "times": 1, "retry_after": 0},
        {
            "tools": [
                {"name": "multiply", "args": {"a": 17, "b": 23}},
                {"name": "helper", "args": {"input": "one"}},
                {"name": "helper", "args": {"input": "two"}},
                {"name": "place"},
                {"name": "read_note"},
            ]
        },
        {"text": "Read: {tool}"},
    ],
    "helper": [{"text": "helped with {user}", "delay": 0.01}],
}


def make_project(root: Path) -> Path:
    root.mkdir()
    (root / "lead.agent").write_text(LEAD)
    (root / "helper.agent").write_text(HELPER)
    (root / "tools.py").write_text(TOOLS)
    (root / "note.txt").write_text("a note")
    (root / "project.json").write_text(json.dumps({k: v for k, v in MANIFEST.items() if k != "runtime"}))
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "desk")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with serve(SCRIPTS) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
        yield log


@pytest.fixture(scope="module")
def cassette(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The cassette of one run, of the same project in another folder."""
    folder = tmp_path_factory.mktemp("recorded")
    with serve(SCRIPTS) as (url, _), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
        path = folder / "lead.cassette.json"
        played = play(make_project(folder / "desk"), "Go", cassette=path, record_cassette=True)
    assert played.status == "completed", played.result.errors
    return path.read_bytes()


@pytest.fixture
def recorded(root: Path, cassette: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That cassette, where there is neither a key nor a network."""
    path = root.parent / "lead.cassette.json"
    path.write_bytes(cassette)
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    return path


def _refuse(*_: object) -> NoReturn:
    raise AssertionError("a replay needs no network")


def replay(root: Path, cassette: Path, input: object = "Go", **options: Any) -> Played:
    return play(root, input, cassette=cassette, **options)


def test_a_replay_is_the_recorded_run_without_key_and_network(root: Path, recorded: Path) -> None:
    played = replay(root, recorded)

    assert played.status == "completed"
    assert played.output == "Read: a note"
    assert sorted(played.tools) == ["helper", "helper", "multiply", "place", "read_note"]
    assert played.result.usage.requests == 5
    assert [event.type for event in played.events].count("retry") == 1


def test_a_streamed_replay_emits_the_text(root: Path, recorded: Path) -> None:
    project = Project.load(root)
    runtime = Runtime(project, transport=player_of(recorded, project, again="again"))
    texts: list[str] = []
    runtime.on("text", lambda event: texts.append(event.text))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]

    assert runtime.run_sync("Go").output == "Read: a note"
    assert "Read: a note" in texts


def test_a_replay_works_in_another_folder_on_a_machine_with_other_settings(
    root: Path, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_DO_MODEL", "anthropic:elsewhere")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example/v1")
    elsewhere = make_project(tmp_path / "a copy")

    played = replay(elsewhere, recorded, max_steps=9)

    assert played.status == "completed", played.result.errors
    assert played.call("place").result == str(elsewhere)


def test_recording_the_same_traffic_again_changes_nothing_but_the_line_that_says_when(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[list[str]] = []
    for name in ("a.json", "b.json"):
        with serve(SCRIPTS) as (url, _):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            monkeypatch.setenv("OPENAI_API_KEY", f"sk-not-a-real-key-{name}")
            play(root, "Go", cassette=tmp_path / name, record_cassette=True)
        texts.append((tmp_path / name).read_text().splitlines())

    assert [(one, other) for one, other in zip(*texts, strict=True) if one != other and '"made"' not in one] == []


def test_no_secret_and_no_path_of_the_machine_is_in_a_cassette(root: Path, server: list[Any]) -> None:
    (root / "note.txt").write_text("the key is sk-not-a-real-key-1234, Authorization: Bearer abcdefgh12")
    path = root / "c.json"
    play(root, "my key: sk-not-a-real-key-1234", cassette=path, record_cassette=True)
    text = path.read_text()

    assert "sk-not-a-real-key" not in text
    assert "abcdefgh12" not in text
    assert str(root) not in text
    assert replay(root, path, "my key: sk-not-a-real-key-1234").status == "completed"


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new, 1))

    return change


CHANGES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "instructions": (edit("lead.agent", "briefly.", "briefly!"), "lead's instructions have changed", "lead.agent:"),
    "other instructions": (edit("helper.agent", "one thing", "a thing"), "helper's instructions", "helper.agent:"),
    "model": (edit("lead.agent", "openai-chat:lead", "openai-chat:leaf"), "lead's model has changed", "lead.agent:"),
    "setting": (edit("lead.agent", "0.5", "0.6"), "lead's setting temperature has changed", "lead.agent:"),
    "description": (
        edit("tools.py", "two numbers", "numbers"), "the description of the tool multiply has changed", "tools.py:5"),
    "parameter": (edit("tools.py", "b: int", "b: float"), "the schema of the tool multiply has changed", "tools.py:5"),
    "description of an agent": (
        edit("helper.agent", "Helps the lead", "Helps the leads"), "description of the tool helper", "helper.agent:"),
    "a tool fewer": (edit("lead.agent", ", place]", "]"), "lead no longer has the tool place", "lead.agent:"),
    "a file that a tool reads": (edit("note.txt", "a note", "b note"), "the result of read_note is not", ""),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CHANGES)
def test_one_changed_character_misses_and_says_where(root: Path, recorded: Path, name: str) -> None:
    change, what, where = CHANGES[name]
    change(root)

    played = replay(root, recorded)

    assert played.status == "provider_failed"
    (error,) = [each for each in played.result.errors if each.type == "CassetteMissError"]
    assert what in error.message
    assert where in error.message
    with pytest.raises(CassetteMissError) as raised:
        played.result.raise_for_status()
    assert raised.value.block
    assert error.to_dict()["block"] == raised.value.block
    assert "record_cassette=True" in str(raised.value.hint)
    assert "5 requests" in str(raised.value.hint)


def test_another_input_misses(root: Path, recorded: Path) -> None:
    with pytest.raises(CassetteMissError, match="the input of lead has changed") as raised:
        replay(root, recorded, "Go!").result.raise_for_status()

    assert str(raised.value.block).splitlines()[-2:] == ["-Go", "+Go!"]


def test_a_miss_ends_the_run_whatever_catches_it(root: Path, recorded: Path) -> None:
    (root / "flow.py").write_text(
        """
async def main(input, ctx):
    try:
        return await ctx.call("lead", "Stop")
    except BaseException as error:
        return f"caught {error}"
"""
    )
    manifest = {**MANIFEST, "python_files": ["tools.py", "flow.py"], "entry": {"function": "flow.py:main"}}
    manifest.pop("runtime")
    (root / "project.json").write_text(json.dumps(manifest))

    played = replay(root, recorded)

    assert played.status == "provider_failed"


def test_an_ignored_text_counts_as_equal(root: Path, server: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    ignore = [r"\d{4}-\d{2}-\d{2}"]
    play(root, "It is 2026-11-28.", cassette=path, record_cassette=True, ignore=ignore)

    replay(root, path, "It is 2027-01-01.", ignore=ignore).result.raise_for_status()
    assert replay(root, path, "It was 2027-01-01.", ignore=ignore).status == "provider_failed"


def test_recordings_that_nobody_asked_for_are_known(root: Path, recorded: Path) -> None:
    project = Project.load(root)
    player = player_of(recorded, project, again="again")
    assert len(player.unused) == 5
    assert Runtime(project, transport=player).run_sync("Go").status == "completed"
    assert player.unused == []


def test_a_failure_of_the_provider_is_replayed(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    with serve({"lead": [{"status": 401, "times": 9, "body": {"error": {"message": "no such key"}}}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key-000000")
        play(root, "Go", cassette=path, record_cassette=True)

    played = replay(root, path)

    assert played.status == "provider_failed"
    assert "no such key" in played.result.errors[0].message


def test_a_list_of_models_is_replayed_model_by_model(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    edit("lead.agent", "model: openai-chat:lead", "model: [openai-chat:first, openai-chat:lead]")(root)
    edit("lead.agent", "toolsets: [helper]\n", "")(root)
    path = tmp_path / "c.json"
    scripts = {"first": [{"status": 404, "times": 9}], "lead": [{"text": "from the second"}]}
    with serve(scripts) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key-000000")
        play(root, "Go", cassette=path, record_cassette=True)
    monkeypatch.delenv("OPENAI_API_KEY")

    played = replay(root, path)

    assert played.output == "from the second"
    assert played.result.usage.requests == 2


def test_a_missing_cassette_says_how_to_record_one(root: Path) -> None:
    with pytest.raises(UsageError, match="there is no cassette"):
        replay(root, root / "none.json")


def test_a_hand_edited_answer_is_what_is_replayed(root: Path, recorded: Path) -> None:
    recorded.write_text(recorded.read_text().replace("Read: a note", "Edited"))

    assert replay(root, recorded).output == "Edited"


def test_what_a_session_recorded_can_be_written_at_any_time(root: Path, server: list[Any], tmp_path: Path) -> None:
    project = Project.load(root)
    recorder = recorder_for(project)
    runtime = Runtime(project, transport=recorder)
    runtime.run_sync("Go")
    runtime.run_sync("Again")
    write_cassette(tmp_path / "new" / "c.json", recorder.cassette())

    player = player_of(tmp_path / "new" / "c.json", project, again="again")
    replaying = Runtime(project, transport=player)
    assert [replaying.run_sync(text).status for text in ("Go", "Again")] == ["completed", "completed"]
    assert player.unused == []


def test_answers_and_a_cassette_exclude_each_other(root: Path) -> None:
    with pytest.raises(ValueError, match="a cassette has the answers"):
        play(root, "Go", answers=[{"text": "x"}], cassette=root / "c.json")
    with pytest.raises(ValueError, match="pass the cassette to record"):
        play(root, "Go", record_cassette=True)
