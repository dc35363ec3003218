"""Processes that are killed before and after every commit of a durable run: it ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import ApprovalDecision
from llm_do.runtime.approval.question_answers import answer_question, pending_questions
from llm_do.threads import SqliteStore
from tests.durable.scenarios import effects_of
from tests.durable.test_resumed_runs import store_path, without_times
from tests.support.postgres import Server
from tests.threads.thread_support import child

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked")]

MOST = 80
"""More commits than any of the runs has."""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place_of(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """A function that returns where a run is recorded: None for the file of its project."""
    if request.param == "sqlite":
        return lambda: None
    server: Server = request.getfixturevalue("postgres")
    return server.url


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that carries out a task, and returns the exit status of its process."""
    script = Path(__file__).with_name("kill_process.py")
    process = child(str(script), str(tmp_path_factory.mktemp("warm")), wait=False, stdin=subprocess.PIPE)

    def carry_out(root: Path, store: str | None, **task: Any) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"root": str(root), "store": store, "thread": "t", **task}) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, process.stderr and process.stderr.read()
        return int(answer)

    yield carry_out
    process.communicate()


def result_of(root: Path) -> Any:
    data = json.loads((root / "result").read_text())
    for records in ("calls", "approvals"):
        data[records] = sorted(data[records], key=lambda each: each["call_id"])
    return without_times(data)


@pytest.mark.parametrize(
    ("scenario", "moments"),
    [
        ("nested", ("before", "after")),
        ("gather", ("after",)),
        ("gates", ("before",)),
        ("approvals", ("after",)),
        ("memory", ("after",)),
    ],
)
def test_a_run_survives_a_kill_at_every_commit(
    scenario: str, moments: tuple[str, ...], server: Any, place_of: Callable[[], str | None], tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert server(whole, place_of(), scenario=scenario) == 0
    expected, done = result_of(whole), Counter(effects_of(whole))

    for number in range(MOST):
        for moment in moments:
            root = tmp_path / f"{number}-{moment}"
            root.mkdir()
            place = place_of()
            status = server(root, place, scenario=scenario, commit=number, moment=moment)
            if status == 0:
                assert number > 8  # it has more commits than that
                return
            assert status == signal.SIGKILL
            assert server(root, place, scenario=scenario) == 0, (number, moment)
            assert result_of(root) == expected, (number, moment)
            after = Counter(effects_of(root))
            # Only what was in flight ran again, and nothing is missing.
            assert after.keys() == done.keys(), (number, moment)
            assert sum((after - done).values()) <= 3, (number, moment)
            assert max((after - done).values(), default=0) <= 1, (number, moment)
    raise AssertionError("it has too many commits")


def test_a_budget_of_requests_is_never_overrun(server: Any, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert server(whole, None, scenario="budget") == 0
    assert effects_of(whole).count("request") == 4

    for number in range(MOST):
        for moment in ("before", "after"):
            root = tmp_path / f"{number}-{moment}"
            root.mkdir()
            status = server(root, None, scenario="budget", commit=number, moment=moment)
            if status == 0:
                assert number > 10
                return
            assert server(root, None, scenario="budget") == 0, (number, moment)
            assert result_of(root)["status"] == "limited", (number, moment)
            assert effects_of(root).count("request") <= 4, (number, moment)
    raise AssertionError("it has too many commits")


def answer_all(root: Path) -> int:
    """Answer what a run asks, from this process, with nothing of it running; returns how many questions these were."""

    async def answer() -> int:
        store = SqliteStore(store_path(root))
        try:
            questions = await pending_questions(store)
            for each in questions:
                given = {"approval": ApprovalDecision("once"), "ask": "2", "in_flight": "repeat"}[each.kind]
                await answer_question(store, each.id, given)
            return len(questions)
        finally:
            await store.aclose()

    return asyncio.run(answer())


def test_answers_of_another_process_survive_a_kill_at_every_commit(server: Any, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert server(whole, None, scenario="approvals") == 0
    expected, done = result_of(whole), Counter(effects_of(whole))
    alone = {"approvals": "prompt", "ask_user": None}

    for killed in range(4):  # which of the run's processes is killed
        for number in range(MOST):
            root = tmp_path / f"{killed}-{number}"
            root.mkdir()
            hit = False
            for process in range(12):
                kill = {"commit": number, "moment": "after"} if process == killed else {}
                hit = server(root, None, scenario="approvals", options=alone, **kill) == signal.SIGKILL or hit
                if (root / "result").exists():
                    break
                answer_all(root)
            where = (killed, number)
            assert result_of(root) == expected, where
            after = Counter(effects_of(root))
            assert after.keys() == done.keys(), where
            assert max((after - done).values(), default=0) <= 1, where  # only what was in flight ran again
            if not hit:
                break
        else:
            raise AssertionError("it has too many commits")
