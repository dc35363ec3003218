"""Cases and their cassettes: recorded over a real client, replayed without key or network, and what a miss says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do.testing.cases.case import Column, Plan
from llm_do.testing.cases.running import CaseRun
from tests.support.openai_server import serve
from tests.testing.cases.case_projects import ANSWERS, cases, desk, run, shown

TESTS = """
tests:
  - name: keeps minutes
    input: Write the minutes.
    answer: {write_file: once}
    expect:
      output: {contains: Made}
      tools: [read_file, write_file]
      files: {out/minutes.md: {contains: one}}
"""
CASSETTE = "tests/cassettes/minutes/keeps-minutes.json"
RECORD = Plan("record")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with serve({"secretary": ANSWERS}) as (url, log):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
        yield log


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Takes away key and network: a request would fail."""

    def go() -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        monkeypatch.delenv("OPENAI_API_KEY")

    return go


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return desk(tmp_path / "desk", TESTS, model="openai-chat:secretary")


@pytest.fixture
def recorded(root: Path, server: list[Any], offline: Callable[[], None]) -> Path:
    done = run(root, RECORD)
    assert (done.result.status, done.recorded, len(server)) == ("passed", 3, 3)
    offline()
    return root


def failure(done: CaseRun) -> str:
    (found,) = done.result.failures
    return shown(found)


def test_a_recorded_case_is_replayed_without_key_or_network(recorded: Path) -> None:
    before = (recorded / CASSETTE).read_text()
    done = run(recorded)
    assert (done.result.status, done.result.steps, done.result.tool_calls) == ("passed", 3, 2)
    assert not done.misses
    assert (recorded / CASSETTE).read_text() == before
    assert not (recorded / "out").exists()
    assert str(recorded) not in before
    assert "sk-not-a-real" not in before


def test_recording_again_changes_nothing_but_the_first_lines(root: Path, server: list[Any]) -> None:
    run(root, RECORD)
    before = (root / CASSETTE).read_text()
    server.clear()
    run(root, RECORD)
    assert (root / CASSETTE).read_text() == before


def test_a_case_without_a_cassette_asks_no_provider_and_says_how_to_record_one(root: Path, server: list[Any]) -> None:
    done = run(root)
    (found,) = done.result.failures
    assert (done.result.status, found.what, done.misses) == ("failed", "it has no cassette", True)
    assert found.got == "request 1 of secretary would ask openai-chat:secretary, and there is no cassette"
    assert found.hint == "Record it with `llm-do test --record-missing`."
    assert server == []


def test_a_changed_prompt_is_named_with_its_line_and_nothing_else(recorded: Path) -> None:
    path = recorded / "secretary.agent"
    path.write_text(path.read_text().replace("Keep minutes.", "Keep short minutes."))
    done = run(recorded)
    (found,) = done.result.failures
    assert shown(found) == (
        "secretary.agent:6: the cassette has no answer for request 1 of secretary: secretary's instructions have "
        "changed since the recording (secretary.agent:6)"
    )
    assert found.block is not None
    assert found.block.splitlines()[-2:] == ["-Keep minutes.", "+Keep short minutes."]
    assert found.hint == "Record it with `llm-do test --record-missing` (3 requests last time)."
    assert done.misses


def test_recordings_that_are_not_asked_for_fail_a_test(recorded: Path) -> None:
    data = json.loads((recorded / CASSETTE).read_text())
    data["exchanges"][0]["response"]["parts"] = [{"content": "Made nothing.", "part_kind": "text"}]
    (recorded / CASSETTE).write_text(json.dumps(data))
    tests = recorded / "tests/minutes.test.yaml"
    tests.write_text(tests.read_text().partition("      tools")[0])
    done = run(recorded)
    (found,) = done.result.failures
    assert found.what == "2 recordings were not asked for"
    assert found.file == Path(CASSETTE)
    assert found.block == "request 2 of secretary\nrequest 3 of secretary"
    assert done.misses


DAMAGED = {
    "not JSON": ("{", "the cassette is not JSON"),
    "half written": ('{"cassette": 1, "models": {}, "agents": {}, "exchanges": [{"call": ""}]}', "is damaged"),
    "another version": ('{"cassette": 99}', "the cassette is not a cassette of version"),
    "a list": ("[]", "the cassette is not a cassette"),
    "a conflict": ('{\n<<<<<<< ours\n"cassette": 1\n=======\n}\n', "the cassette has a merge conflict"),
    "not text": ("\udcff", "the cassette the cassette can't be read"),
    "empty": ("", "the cassette is not JSON"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_cassette_fails_its_case_alone_and_names_it(root: Path, kind: str) -> None:
    text, what = DAMAGED[kind]
    path = root / CASSETTE
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = run(root)
    (found,) = done.result.failures
    assert done.result.status == "failed"
    assert what in found.what
    assert str(root) not in found.what
    assert found.file == Path(CASSETTE)
    assert found.hint == "Record it with `llm-do test --record-missing`."
    assert done.misses


def test_a_provider_that_fails_while_recording_leaves_the_old_cassette(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (recorded / CASSETTE).read_text()
    with serve({"secretary": [{"status": 401, "times": 99}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
        done = run(recorded, RECORD)
    assert (done.provider_failed, done.recorded, done.result.status) == (True, 0, "failed")
    assert (recorded / CASSETTE).read_text() == before


def test_what_is_expected_of_a_recorded_run_can_fail_and_is_recorded_all_the_same(
    root: Path, server: list[Any], offline: Callable[[], None]
) -> None:
    tests = root / "tests/minutes.test.yaml"
    tests.write_text(tests.read_text().replace("contains: Made", "contains: Nothing"))
    done = run(root, RECORD)
    assert (done.result.status, done.recorded) == ("failed", 3)
    offline()
    assert failure(run(root)) == "tests/minutes.test.yaml:7: the output doesn't contain the text"


def test_a_live_run_records_nothing_and_counts_its_repeats(root: Path, server: list[Any]) -> None:
    done = run(root, Plan("live", repeat=2))
    assert (done.result.status, done.result.repeats, done.result.steps) == ("passed", 2, 6)
    assert not (root / CASSETTE).exists()
    assert not (root / "out").exists()


@pytest.mark.slow
def test_a_live_case_passes_if_enough_of_its_repeats_do(
    root: Path, monkeypatch: pytest.MonkeyPatch, server: list[Any]
) -> None:
    tests = root / "tests/minutes.test.yaml"
    tests.write_text(tests.read_text() + "    live: {repeat: 4, pass: 0.5}\n")
    with serve({"secretary": [{"status": 400, "times": 2}, *ANSWERS]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        done = run(root, Plan("live"))
        assert (done.result.status, done.result.passed_repeats, done.result.repeats) == ("passed", 2, 4)
    with serve({"secretary": [{"status": 400, "times": 3}, *ANSWERS]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        done = run(root, Plan("live"))
        assert (done.result.status, done.result.passed_repeats, len(done.result.failures)) == ("failed", 1, 1)


def test_a_model_of_the_command_line_takes_no_recordings(recorded: Path) -> None:
    done = run(recorded, Plan(model=f"script:{recorded}/answers.yaml"))
    assert done.result.status == "passed"
    asked = run(recorded, Plan(model="openai-chat:other"))
    (found,) = asked.result.failures
    assert found.what.startswith("a replay asks no provider: request 1 of secretary would ask openai-chat:other")
    assert not asked.misses


def test_a_column_has_models_agents_and_a_cassette_of_its_own(recorded: Path) -> None:
    strict = (recorded / "secretary.agent").read_text().replace("openai-chat:secretary", "script:other.yaml")
    (recorded / "strict.agent").write_text(strict)
    (recorded / "other.yaml").write_text(json.dumps([{"text": "Nothing to do."}]))
    manifest = json.loads((recorded / "project.json").read_text())
    (recorded / "project.json").write_text(json.dumps({**manifest, "agent_files": ["secretary.agent"]}))
    column = Column("strict", agents={"secretary": "strict.agent"})
    done = run(recorded, Plan(column=column))
    assert (done.result.column, done.result.output) == ("strict", "Nothing to do.")
    assert run(recorded, Plan(column=Column("scripted", model="script:answers.yaml"))).result.status == "passed"
    assert run(recorded, Plan(column=Column("other", model="openai-chat:x"))).result.failures[0].what == (
        "it has no cassette"
    )


JUDGED = """
tests:
  - name: keeps minutes
    input: Write the minutes.
    answer: once
    expect: {judge: {says: The minutes are written., model: "openai-chat:judge"}}
"""


def verdict(is_true: bool) -> dict[str, Any]:
    return {"tools": [{"name": "final_result", "args": {"reason": "I have looked.", "is_true": is_true}}]}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("answer", "status", "what"),
    [
        ({"tools": [{"name": "final_result", "args": {"reason": "They are.", "is_true": True}}]}, "passed", None),
        (
            {"tools": [{"name": "final_result", "args": {"reason": "None.", "is_true": False}}]},
            "failed",
            "the judge says that it isn't true",
        ),
        ({"text": "It is true."}, "error", "the judge gave no answer: "),
    ],
)
def test_a_judge_is_recorded_and_replayed_with_the_run(
    tmp_path: Path,
    answer: dict[str, Any],
    status: str,
    what: str | None,
    monkeypatch: pytest.MonkeyPatch,
    offline: Callable[[], None],
) -> None:
    root = desk(tmp_path / "desk", JUDGED, model="openai-chat:secretary")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
    with serve({"secretary": ANSWERS, "judge": [answer, answer]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        first = run(root, RECORD)
    offline()
    for done in (first, run(root)):
        assert done.result.status == status
        assert [failure.what[: len(what or "")] for failure in done.result.failures] == ([what] if what else [])
        assert done.result.usage.requests == (5 if "text" in answer else 4)  # a judge may correct itself once


def test_cassettes_of_columns_are_told_from_those_of_other_tests(tmp_path: Path) -> None:
    files = {"tests/minutes/small.test.yaml": "tests: [{name: keeps}, {name: keeps.small}]"}
    root = desk(tmp_path, "tests: [{name: keeps}, {name: keeps@small}]\nmatrix: {small: {model: test}}", files=files)

    paths = [case.cassette(column) for case in cases(root) for column in (None, "small")]

    assert len(set(paths)) == len(paths) == 8


def test_a_provider_that_fails_to_judge_fails_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Callable[[], None]
) -> None:
    root = desk(tmp_path / "desk", JUDGED, model="openai-chat:secretary")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-1234")
    with serve({"secretary": ANSWERS, "judge": [{"status": 401, "times": 99}]}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        done = run(root, RECORD)

    assert (done.provider_failed, done.recorded, done.result.status) == (True, 0, "error")
    assert failure(done).startswith("tests/minutes.test.yaml:6: the judge gave no answer: ")
    assert not (root / CASSETTE).exists()
