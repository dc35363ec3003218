"""`llm-do map` as processes that are killed, interrupted, and run side by side: the output is the same in the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from tests.cli.cli_processes import LLM_DO, environment

if TYPE_CHECKING:
    from tests.support.postgres import Server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")]

COUNT = 120

PATIENCE = 120
"""Seconds that anything may take on a busy machine."""

PROJECT = """\
{"version": 1, "entry": {"function": "work.py:main"}, "agent_files": ["*.agent"], "python_files": ["work.py"]}
"""

WORK = '''\
import asyncio, os
from decimal import Decimal

from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from llm_do import register_model_factory


def note(file, text):
    with open(file, "a") as stream:
        stream.write(f"{text}\\n")


async def answer(messages, info):
    await asyncio.sleep(0.02)
    note("requests", "one")
    usage = RequestUsage(input_tokens=1, output_tokens=1, cost=Decimal("0.01"))
    return ModelResponse([TextPart("answered")], usage=usage)


register_model_factory("priced", lambda name: FunctionModel(answer))


def work(word: str) -> str:
    """Do something that shouldn't happen twice."""
    note("effects", word)
    return word.upper()


async def main(input, ctx):
    print(input.input)
    if input.input.endswith("9"):
        raise ValueError("nine")
    said = await ctx.call("reader", input.input)
    return f"{said}: {await ctx.step('work', lambda: work(input.input))}"
'''

READER = "---\nname: reader\nmodel: priced:one\n---\nRead.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that notes its requests and effects, and its inputs."""
    for name, text in {"project.json": PROJECT, "work.py": WORK, "reader.agent": READER}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "in.jsonl").write_text("".join(f'"item {number}"\n' for number in range(COUNT)))
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> list[str]:
    """The option that names a store: none for the project's own file."""
    if request.param == "sqlite":
        return []
    server: Server = request.getfixturevalue("postgres")
    return ["--store", server.url()]


def expected() -> Iterator[dict[str, object]]:
    for number in range(COUNT):
        line: dict[str, object] = {"line": number + 1, "status": "completed"}
        if number % 10 == 9:
            yield {"line": number + 1, "status": "failed"}
        else:
            yield {**line, "output": f"answered: ITEM {number}"}


def start(root: Path, out: IO[bytes], *args: str) -> subprocess.Popen[bytes]:
    command = [*LLM_DO, "map", "in.jsonl", "--concurrency", "8", *args]
    return subprocess.Popen(command, cwd=root, stdout=out, stderr=subprocess.PIPE, env=environment())


def lines_in(root: Path, file: str) -> Counter[str]:
    path = root / file
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def wait_for(process: subprocess.Popen[bytes], root: Path, count: int) -> None:
    """Wait until so many effects have happened, or the process has ended."""
    while process.poll() is None and lines_in(root, "effects").total() < count:
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


def check_output(text: str) -> None:
    found = [json.loads(line) for line in text.splitlines()]
    assert [{key: value for key, value in line.items() if key != "error"} for line in found] == list(expected())


def test_kills_and_interruptions_leave_no_trace_in_the_output(root: Path, store: list[str]) -> None:
    chance = random.Random(7)
    stops, code, said = 0, 0, b""
    for number in range(5):
        with (root / f"out{number}").open("wb") as out:
            process = start(root, out, *store)
            if number < 4:
                wait_for(process, root, lines_in(root, "effects").total() + chance.randrange(4, 24))
                process.send_signal(signal.SIGKILL if number % 2 == 0 else signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
        assert b"Traceback" not in said
        code = process.returncode
        stops += code not in (0, 1)
    assert code == 1, said  # some have failed
    assert stops > 2
    last = (root / "out4").read_text()
    check_output(last)
    for number in range(4):  # what earlier ones wrote is the beginning of it
        assert last.startswith((root / f"out{number}").read_text().rpartition("\n")[0])
    effects = lines_in(root, "effects")
    assert set(effects) == {f"item {number}" for number in range(COUNT) if number % 10 != 9}
    # Only what was in flight at a stop happened again.
    assert effects.total() - len(effects) <= 8 * stops
    with (root / "again").open("wb") as out:
        start(root, out, *store).communicate(timeout=PATIENCE)
    assert (root / "again").read_text() == last
    assert lines_in(root, "effects") == effects


def test_two_processes_share_the_work_and_both_print_it(root: Path, store: list[str]) -> None:
    with (root / "one").open("wb") as one, (root / "two").open("wb") as two:
        processes = [start(root, one, *store), start(root, two, *store)]
        for process in processes:
            process.communicate(timeout=PATIENCE)
    assert (root / "one").read_bytes() == (root / "two").read_bytes()
    check_output((root / "one").read_text())
    assert set(lines_in(root, "effects").values()) == {1}
    assert lines_in(root, "requests").total() == COUNT * 9 // 10


def test_what_one_process_leaves_another_takes_over(root: Path, store: list[str]) -> None:
    with (root / "one").open("wb") as one, (root / "two").open("wb") as two:
        killed, lives = start(root, one, *store), start(root, two, *store)
        wait_for(killed, root, 30)
        killed.kill()
        killed.communicate()
        lives.communicate(timeout=PATIENCE)
    check_output((root / "two").read_text())
    effects = lines_in(root, "effects")
    assert effects.total() - len(effects) <= 8


def test_a_budget_holds_over_processes_and_kills(root: Path, store: list[str]) -> None:
    budget = ["--budget-usd", "0.5", "--budget-each-usd", "0.02", *store]
    codes: list[int] = []
    for number in range(4):
        with (root / f"out{number}").open("wb") as out, (root / "beside").open("wb") as beside:
            processes = [start(root, out, *budget), start(root, beside, *budget)]
            if number < 3:
                wait_for(processes[0], root, 10 + 10 * number)
                processes[0].kill()
            codes = [process.communicate(timeout=PATIENCE) and process.returncode for process in processes]
    assert codes == [6, 6]
    spent = lines_in(root, "requests").total() * 0.01
    assert 0.3 < spent <= 0.5


def test_a_restart_of_the_database_leaves_no_trace_in_the_output(root: Path, own_server: Server) -> None:
    """Commands that lose their store end, with what they have printed; the same command continues."""
    store = ["--store", own_server.url()]
    with (root / "one").open("wb") as one, (root / "two").open("wb") as two:
        processes = [start(root, one, *store), start(root, two, *store)]
        wait_for(processes[0], root, 30)
        own_server.control("restart", "-m", "immediate")
        said = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert not any(b"Traceback" in each for each in said), said
    with (root / "again").open("wb") as out:
        _, last = start(root, out, *store).communicate(timeout=PATIENCE)
    assert b"Traceback" not in last, last
    check_output((root / "again").read_text())
    effects = lines_in(root, "effects")
    assert effects.total() - len(effects) <= 16
    for name in ("one", "two"):  # what was printed before is the beginning of it
        assert (root / "again").read_text().startswith((root / name).read_text().rpartition("\n")[0])
