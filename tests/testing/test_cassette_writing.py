"""Writing a cassette: whole or not at all, checked before anything is paid for, by one process or by several."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do import UsageError
from llm_do.testing import play
from llm_do.testing.cassettes.cassette_reader import parse_cassette
from llm_do.testing.cassettes.files import check_target
from tests.support.openai_server import serve

MANIFEST = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}


def desk(root: Path, model: str = "script:a.yaml") -> Path:
    (root / "main.agent").write_text(f"---\nname: main\nmodel: {model}\n---\nHi.\n")
    (root / "a.yaml").write_text("- text: 'You said {input}'\n")
    (root / "project.json").write_text(json.dumps(MANIFEST))
    return root


def is_a_file(root: Path) -> Path:
    (root / "file").write_text("x")
    return root / "file" / "c.json"


def is_a_folder(root: Path) -> Path:
    (root / "c.json").mkdir()
    return root / "c.json"


def is_something_else(root: Path) -> Path:
    (root / "notes.md").write_text("# Notes")
    return root / "notes.md"


def is_a_device(root: Path) -> Path:
    return Path("/dev/null")


def holds_no_files(root: Path) -> Path:
    (root / "odd").symlink_to("/proc/self")
    return root / "odd" / "c.json"


TARGETS: list[tuple[Callable[[Path], Path], str]] = [
    (is_a_file, "is not a folder"),
    (is_a_folder, "it is a folder"),
    (is_something_else, "it is another file, which would be lost"),
    (is_a_device, "it is not a file"),
    (holds_no_files, "/odd"),
]


@pytest.mark.parametrize(("target", "message"), TARGETS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_file_that_can_not_be_written_is_refused_before_a_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Callable[[Path], Path], message: str
) -> None:
    root = desk(tmp_path, "openai-chat:m")
    path = target(tmp_path)
    with serve({"m": [{"text": "paid"}]}) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key-000000")
        with pytest.raises(UsageError, match="can't be written") as raised:
            play(root, "Go", cassette=path, record_cassette=True)
        assert log == []
    assert message in raised.value.message
    assert raised.value.hint


def test_folders_that_are_missing_are_made_and_old_cassettes_are_replaced(tmp_path: Path) -> None:
    root, path = desk(tmp_path), tmp_path / "tests" / "cassettes" / "c.json"
    for word in ("one", "two"):
        play(root, word, cassette=path, record_cassette=True)
        assert play(root, word, cassette=path).output == f"You said {word}"
    path.write_text("<<<<<<< ours\n" + path.read_text())
    play(root, "three", cassette=path, record_cassette=True)

    assert play(root, "three", cassette=path).output == "You said three"
    assert [each.name for each in path.parent.iterdir()] == ["c.json"]


def test_an_empty_file_may_become_a_cassette(tmp_path: Path) -> None:
    (tmp_path / "c.json").touch()
    check_target(tmp_path / "c.json")
    check_target(Path("c.json"))


def command(root: Path, path: Path, text: str = "Go") -> list[str]:
    return [sys.executable, "-m", "llm_do", "run", str(root), text, "--record", str(path)]


@pytest.mark.slow
def test_whoever_is_killed_while_recording_leaves_the_old_cassette(tmp_path: Path) -> None:
    root, path = desk(tmp_path), tmp_path / "c.json"
    play(root, "old", cassette=path, record_cassette=True)
    old = path.read_text()
    seen = set()
    for number in range(25):
        path.write_text(old)
        process = subprocess.Popen(command(root, path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.1 + number * 0.05)  # the moment of the kill is what is tested
        process.kill()
        process.wait()
        text = path.read_text()
        parse_cassette(text, "c.json")
        seen.add(text == old)
    assert True in seen


@pytest.mark.slow
def test_an_interrupted_run_records_nothing_and_says_so(tmp_path: Path) -> None:
    with serve({"m": [{"text": "late", "delay": 5}]}) as (url, log):
        root, path = desk(tmp_path, "openai-chat:m"), tmp_path / "c.json"
        environ = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-some-key-000000"}
        process = subprocess.Popen(
            command(root, path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
        )
        while not log:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "nothing was recorded: the run was interrupted" in err
    assert not path.exists()


@pytest.mark.slow
def test_of_two_processes_that_record_in_one_file_the_last_wins(tmp_path: Path) -> None:
    root, path = desk(tmp_path), tmp_path / "c.json"
    for _ in range(5):
        processes = [
            subprocess.Popen(command(root, path, text), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for text in ("one", "two", "three")
        ]
        assert [process.wait() for process in processes] == [0, 0, 0]
        outputs = [play(root, text, cassette=path).status for text in ("one", "two", "three")]
        assert outputs.count("completed") == 1
    assert sorted(each.name for each in tmp_path.iterdir() if each.suffix == ".json") == ["c.json", "project.json"]
