"""`llm-do worker`: processes that share a queue, and are killed, stopped, and cut off from their store."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.cli_processes import LLM_DO, Ended, environment, run_forked
from tests.durable.worker_process import WorkerProcess, kill_workers, wait_until

if TYPE_CHECKING:
    from tests.support.postgres import Server

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")]

PROJECT = '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"], "python_files": ["work.py"]}'

MAIN = "---\nname: main\nmodel: scripted:one\ntools: [work]\n---\nWork.\n"

WORK = '''\
import asyncio
from pathlib import Path

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from llm_do import register_model_factory


def note(file, text):
    with open(file, "a") as stream:
        stream.write(f"{text}\\n")


async def answer(messages, info):
    await asyncio.sleep(0.01)
    last = messages[-1].parts[-1]
    if last.content.startswith("bad"):
        raise ValueError("bad word")
    if last.part_kind != "tool-return":
        return ModelResponse([ToolCallPart("work", {"word": last.content}, "work")])
    note("requests", "second")
    return ModelResponse([TextPart(str(last.content))])


register_model_factory("scripted", lambda name: FunctionModel(answer))


async def work(word: str) -> str:
    """Do something that must not happen twice."""
    note("effects", word)
    if word.startswith("long"):
        while not Path("go").exists():
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.01)
    return word.upper()


TOOLS = [work]
'''


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project whose tool has an effect; its workers end with the test."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for name, text in {"project.json": PROJECT, "work.py": WORK, "main.agent": MAIN}.items():
        (folder / name).write_text(text)
    yield folder
    kill_workers()


AGAIN = "the store can be reached again\n"


def write_inputs(root: Path, *words: str) -> None:
    (root / "in.jsonl").write_text("".join(f"{json.dumps(word)}\n" for word in words))


def do(root: Path, command: str, *args: str) -> Ended:
    return run_forked(command, *args, cwd=root)


def effects(root: Path) -> Counter[str]:
    path = root / "effects"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def outputs(ended: Ended) -> list[object]:
    return [json.loads(line).get("output") for line in ended.out.splitlines()]


@pytest.mark.slow
def test_a_worker_carries_out_what_map_has_put_on_the_queue(root: Path) -> None:
    write_inputs(root, "a", "bad", "c")
    queued = do(root, "map", "in.jsonl", "--batch", "words", "--detach")
    assert (queued.code, queued.out) == (0, "")
    assert "batch words: 3 of 3 inputs are on the queue" in queued.err
    assert "print the results: llm-do map in.jsonl --batch words\n" in queued.err
    assert not effects(root)

    worked = do(root, "worker", "--exit-when-empty", "--approve-all")
    assert (worked.code, worked.out) == (0, "")
    assert "ended: 2 completed, 1 failed" in worked.err
    assert "words-2 failed: " in worked.err
    assert effects(root) == Counter(["a", "c"])

    collected = do(root, "map", "in.jsonl", "--batch", "words")
    assert collected.code == 1
    assert outputs(collected) == ["A", None, "C"]
    assert effects(root) == Counter(["a", "c"])

    # What has failed is put on the queue again, and only that.
    again = do(root, "map", "in.jsonl", "--batch", "words", "--retry", "failed", "--detach")
    assert "batch words: 1 of 3 inputs are on the queue" in again.err
    assert "print the results: llm-do map in.jsonl --batch words\n" in again.err
    assert "ended: 0 completed, 1 failed" in do(root, "worker", "--exit-when-empty").err


@pytest.mark.slow
def test_a_worker_takes_only_what_is_meant_for_it(root: Path) -> None:
    write_inputs(root, "a")
    store = str(root.parent / "shared.db")
    missing = do(root, "worker", "--batch", "words", "--store", store)
    assert missing.code == 2
    assert f"the store has no batch 'words'. Begin it with the same --store: `llm-do map --store {store} FILE" in (
        missing.err
    )
    do(root, "map", "in.jsonl", "--batch", "words", "--detach", "--store", store)
    do(root, "map", "in.jsonl", "--batch", "others", "--detach", "--store", store)

    only = do(root, "worker", "--batch", "others", "--exit-when-empty", "--store", store, "--approve-all")
    assert "ended: 1 completed" in only.err

    (root / "main.agent").write_text(MAIN + "More.\n")
    named = do(root, "worker", "--batch", "words", "--store", store)
    assert named.code == 2
    assert "batch words was begun with another project, or another version of it: main.agent." in named.err
    general = do(root, "worker", "--exit-when-empty", "--store", store)
    assert general.code == 0
    assert "batch words is left alone: it was begun with other files: main.agent" in general.err
    model = do(root, "worker", "--batch", "words", "--store", store, "-m", "test")
    assert "another version of it: main.agent, model" in model.err
    assert effects(root) == Counter(["a"])

    # Once the change is accepted for the batch, it is this worker's.
    accepted = do(root, "map", "in.jsonl", "--batch", "words", "--detach", "--store", store, "--accept-changes")
    assert accepted.code == 0
    assert "1 completed" in do(root, "worker", "--exit-when-empty", "--store", store, "--approve-all").err


@pytest.mark.slow
def test_a_run_that_waits_is_continued_by_a_worker_once_it_is_answered(root: Path) -> None:
    write_inputs(root, "a", "b")
    assert do(root, "map", "in.jsonl", "--batch", "words", "--detach").code == 0
    first = do(root, "worker", "--exit-when-empty")
    assert (first.code, effects(root)) == (0, Counter()), first.err
    assert "ended: 0 completed, 2 wait for a person" in first.err
    assert "ended: 0 completed\n" in do(root, "worker", "--exit-when-empty").err

    pending = json.loads(do(root, "approvals", "pending", "--format", "json").out)
    assert len(pending) == 2
    do(root, "approvals", "answer", pending[0]["id"], "allow")
    assert "ended: 1 completed\n" in do(root, "worker", "--exit-when-empty").err
    assert effects(root) == Counter(["a"])


def test_a_worker_needs_a_record_and_a_batch_a_name(root: Path) -> None:
    empty = do(root, "worker", "--batch", "")
    assert (empty.code, "--batch is empty" in empty.err) == (2, True)
    none = do(root, "worker", "--concurrency", "0")
    assert none.code == 2
    (root / "project.json").write_text(PROJECT.replace('"version": 1', '"version": 1, "record": false'))
    unrecorded = do(root, "worker")
    assert (unrecorded.code, "nothing is recorded here" in unrecorded.err) == (2, True)


@pytest.mark.slow
def test_a_worker_says_what_its_environment_lacks(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    nowhere = do(tmp_path / "elsewhere", "worker")
    assert nowhere.code == 2
    assert "no project here" in nowhere.err
    assert "Name a folder with a project.json" in nowhere.err

    (root / "work.py").write_text(f"import paid_for\n{WORK}")
    incomplete = do(root, "worker", "--trust")
    assert incomplete.code == 3
    assert "work.py:1:1: error[LD302]" in incomplete.err
    assert "install the package that provides 'paid_for'" in incomplete.err

    (root / "work.py").write_text(WORK)
    (tmp_path / "psycopg.py").write_text("raise ImportError('no driver here')\n")
    without = subprocess.run(
        [*LLM_DO, "worker", "--store", "postgresql://db.invalid/jobs"],
        cwd=root,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"),
        capture_output=True,
        text=True,
    )
    assert without.returncode == 1, without.stderr
    assert "no driver here" in without.stderr
    assert "pip install" in without.stderr


@pytest.mark.slow
def test_a_signal_lets_what_is_running_end_and_another_worker_continues(root: Path) -> None:
    write_inputs(root, *(f"long{number}" for number in range(6)))
    do(root, "map", "in.jsonl", "--detach")
    worker = WorkerProcess(root, "--concurrency", "2")
    wait_until(lambda: effects(root).total() == 2)
    worker.terminate()
    time.sleep(0.5)
    assert worker.poll() is None
    (root / "go").touch()
    said = worker.wait_for_end()
    assert worker.returncode == 0, said
    assert "interrupted by SIGTERM; 2 runs may end what they are doing" in said
    assert "ended: 0 completed; 2 runs left to other workers" in said
    assert effects(root).total() == 2
    assert not (root / "requests").exists()  # no run has begun another step

    rest = do(root, "worker", "--exit-when-empty", "--approve-all")
    assert "ended: 6 completed\n" in rest.err
    assert set(effects(root).values()) == {1}
    assert len(effects(root)) == 6


@pytest.mark.slow
def test_a_second_signal_ends_a_worker_at_once(root: Path) -> None:
    write_inputs(root, "long", "b")
    do(root, "map", "in.jsonl", "--batch", "words", "--detach")
    worker = WorkerProcess(root)
    wait_until(lambda: effects(root)["long"] == 1)
    worker.terminate()
    worker.wait_for("SIGTERM")
    worker.terminate()
    worker.wait_for_end()
    assert worker.returncode == 143
    # Whether the call had its effect isn't known, so it is asked about, and not made again.
    assert "1 wait for a person" in do(root, "worker", "--exit-when-empty", "--approve-all").err
    assert effects(root)["long"] == 1
    (question,) = json.loads(do(root, "approvals", "pending", "--format", "json").out)
    assert question["run_id"] == "words-1"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, root: Path) -> list[str]:
    """The option that names a store: none for the project's own file."""
    if request.param == "sqlite":
        return []
    server: Server = request.getfixturevalue("postgres")
    return ["--store", server.url()]


@pytest.mark.slow
def test_workers_that_are_killed_at_random_repeat_nothing(root: Path, store: list[str]) -> None:
    count, chance = 400, random.Random(11)
    write_inputs(root, *(f"w{number}" for number in range(count)))
    do(root, "map", "in.jsonl", "--batch", "words", "--detach", *store)
    options = ["--concurrency", "8", "--exit-when-empty", *store]
    workers = [WorkerProcess(root, *options) for _ in range(3)]
    kills = 0
    for _ in range(8):
        before = effects(root).total()
        wait_until(
            lambda before=before: effects(root).total() > before + 5 or all(w.poll() is not None for w in workers)
        )
        index = chance.randrange(3)
        if workers[index].poll() is None:
            workers[index].kill()
            kills += 1
        workers[index].wait_for_end()
        workers[index] = WorkerProcess(root, *options)
    for worker in workers:
        said = worker.wait_for_end()
        assert worker.returncode == 0, said
        assert "Traceback" not in said
    assert kills > 3
    assert set(effects(root).values()) == {1}

    # Calls that were running at a kill wait for a person: each of them is told, and they are all that is left.
    pending = json.loads(do(root, "approvals", "pending", "--format", "json", *store).out)
    told = {each["run_id"] for each in pending}
    ended = do(root, "map", "in.jsonl", "--batch", "words", "--in-flight", "fail", "--approve-all", *store)
    assert len(ended.out.splitlines()) == count
    known = {f"words-{number + 1}" for number in range(count) if effects(root)[f"w{number}"]}
    assert {f"words-{number + 1}" for number in range(count)} - known <= told
    unsure = [at for at, text in enumerate(outputs(ended)) if text != f"W{at}"]
    assert {f"words-{at + 1}" for at in unsure} == told


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_that_was_suspended_has_no_effect_once_others_have_its_runs(
    kind: str, root: Path, request: pytest.FixtureRequest
) -> None:
    server: Server | None = request.getfixturevalue("own_server") if kind == "postgres" else None
    store = ["--store", server.url()] if server is not None else []
    write_inputs(root, "long0", "long1", "c")
    do(root, "map", "in.jsonl", "--batch", "words", "--detach", *store)
    worker = WorkerProcess(root, "--concurrency", "2", "--exit-when-empty", *store)
    wait_until(lambda: effects(root).total() == 2)
    worker.send_signal(signal.SIGSTOP)
    # It still counts as alive, and keeps what it has, until its mark is gone: a connection, or a lock file.
    if server is not None:
        owners = "FROM pg_stat_activity WHERE application_name = 'llm-do owner'"
        assert server.query(f"SELECT pg_terminate_backend(pid) {owners}") == [(True,)]
    else:
        (mark,) = (root / ".llm-do" / "owners").iterdir()
        mark.unlink()

    # Its calls may have had their effects, so they are asked about; what it had only claimed is carried out.
    other = do(root, "worker", "--exit-when-empty", "--approve-all", *store)
    assert "ended: 1 completed, 2 wait for a person" in other.err
    assert effects(root) == Counter(["long0", "long1", "c"])
    requests = (root / "requests").read_text()

    (root / "go").touch()
    worker.send_signal(signal.SIGCONT)
    said = worker.wait_for_end()
    assert worker.returncode == 0, said
    assert "0 completed" in said
    assert "Traceback" not in said
    assert effects(root) == Counter(["long0", "long1", "c"])
    assert (root / "requests").read_text() == requests

    ended = do(root, "map", "in.jsonl", "--batch", "words", "--in-flight", "done", "--approve-all", *store)
    assert ended.code == 0, ended.err
    assert outputs(ended)[2] == "C"
    assert "a person has made sure that it was carried out" in str(outputs(ended)[0])
    assert effects(root) == Counter(["long0", "long1", "c"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_workers_outlive_a_restart_of_the_database(root: Path, own_server: Server, mode: str) -> None:
    count, store = 120, ["--store", own_server.url()]
    write_inputs(root, *(f"w{number}" for number in range(count)))
    do(root, "map", "in.jsonl", "--batch", "words", "--detach", *store)
    workers = [WorkerProcess(root, "--concurrency", "4", *store) for _ in range(2)]
    for worker in workers:
        worker.wait_for("working on")  # a store that can't be reached at the start ends a worker
    wait_until(lambda: effects(root).total() > 20)
    own_server.control("stop", "-m", mode)
    for worker in workers:
        worker.wait_for("; trying again")
    assert not any(AGAIN in worker.output for worker in workers)
    own_server.control("start")
    for worker in workers:
        worker.wait_for(AGAIN)

    # Both continue: more calls run at once than one of them carries out. It claims two inputs more, which wait there.
    both = [f"long{number}" for number in range(12)]
    (root / "both.jsonl").write_text("".join(f"{json.dumps(word)}\n" for word in both))
    do(root, "map", "both.jsonl", "--batch", "both", "--detach", *store)
    wait_until(lambda: len(effects(root).keys() & set(both)) > 4)
    (root / "go").touch()
    waiting: list[object] = []

    def is_done() -> bool:
        left = json.loads(do(root, "approvals", "pending", "--format", "json", *store).out)
        waiting[:] = {each["run_id"] for each in left}
        return effects(root).total() + len(waiting) >= count + len(both)

    wait_until(is_done)
    for worker in workers:
        worker.terminate()
    said = [worker.wait_for_end() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    ended = do(root, "map", "in.jsonl", "--batch", "words", "--in-flight", "fail", "--approve-all", *store)
    assert len(ended.out.splitlines()) == count
    assert set(effects(root).values()) == {1}
