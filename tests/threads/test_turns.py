"""Processes that write to one store have their turns in the order in which they asked."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from llm_do.threads.sqlite import queue_files, turns
from llm_do.threads.sqlite.queue_files import open_queue
from llm_do.threads.sqlite.turns import Turns

WAITING = """
import sys
from pathlib import Path
from llm_do.threads.sqlite.turns import Turns
with Turns(Path(sys.argv[1])).turn():
    print("turn", flush=True)
    sys.stdin.read()
"""

ordered = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps the order exactly")


def _last(path: Path) -> int:
    return int.from_bytes(path.read_bytes(), "little") if path.exists() else 0


def _until(path: Path, place: int) -> None:
    """Wait until a place has been taken."""
    end = time.monotonic() + 60
    while _last(path) < place:
        assert time.monotonic() < end, f"no one has taken place {place}"
        time.sleep(0.001)


@contextmanager
def _process(path: Path, place: int) -> Generator[subprocess.Popen[str]]:
    """A process that has taken a place, and keeps its turn until it is told to end, or killed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WAITING, str(path)], text=True, **pipes) as process:
        _until(path, place)
        yield process
        process.kill()


class _Writer(threading.Thread):
    """Takes one turn, as a process does: with a queue of its own."""

    def __init__(self, path: Path, name: int, order: list[int]) -> None:
        super().__init__(daemon=True)
        self._turns, self._name, self._order = Turns(path), name, order

    def run(self) -> None:
        with self._turns.turn():
            self._order.append(self._name)
        self._turns.close()


@ordered
def test_those_that_wait_have_their_turns_in_the_order_in_which_they_asked(tmp_path: Path) -> None:
    path, order = tmp_path / "turn", []
    first = Turns(path)
    writers = [_Writer(path, number, order) for number in range(20)]
    with first.turn():
        for number, writer in enumerate(writers):
            writer.start()
            _until(path, number + 2)
        assert order == []
    for writer in writers:
        writer.join(60)

    assert order == list(range(20))


@ordered
def test_who_has_just_written_waits_behind_those_that_wait(tmp_path: Path) -> None:
    path, order = tmp_path / "turn", []
    first = Turns(path)
    waiting = _Writer(path, 1, order)
    with first.turn():
        waiting.start()
        _until(path, 2)
    with first.turn():
        order.append(2)
    waiting.join(60)

    assert order == [1, 2]


@ordered
@pytest.mark.parametrize("has_turn", [True, False])
def test_a_process_that_is_killed_leaves_its_place(tmp_path: Path, has_turn: bool) -> None:
    path = tmp_path / "turn"
    first = Turns(path)
    with ExitStack() as stack:
        with first.turn():
            killed, last = (stack.enter_context(_process(path, place)) for place in (2, 3))
            if not has_turn:
                killed.kill()
                killed.wait(60)
        assert killed.stdout is not None
        assert last.stdout is not None
        if has_turn:
            assert killed.stdout.readline() == "turn\n"
            killed.kill()
        assert last.stdout.readline() == "turn\n"
        last.communicate("end", timeout=60)

    assert last.returncode == 0


def test_who_waits_too_long_goes_on_and_lets_the_next_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, order = tmp_path / "turn", []
    stopped = Turns(path)
    patient = _Writer(path, 1, order)
    with stopped.turn():
        with monkeypatch.context() as patched:
            patched.setattr(turns, "PATIENCE", 0.01)
            patient.start()
            patient.join(60)
            assert order == [1]
        if sys.platform == "linux":
            waiting = _Writer(path, 2, order)
            waiting.start()
            waiting.join(60)
            assert order == [1, 2]
    again = Turns(path)
    with again.turn():
        order.append(3)
    assert order[-1] == 3


@pytest.mark.parametrize("text", [b"", b"x", b"\xff" * 8, b"\x00" * 100, (2**62).to_bytes(8, "little")])
def test_what_the_file_says_can_not_stop_the_queue(tmp_path: Path, text: bytes) -> None:
    path, order = tmp_path / "turn", []
    path.write_bytes(text)
    writers = [_Writer(path, number, order) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    assert sorted(order) == [0, 1, 2]


def test_elsewhere_one_lock_is_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_files.sys, "platform", "darwin")
    path, order = tmp_path / "turn", []
    queue = open_queue(path)
    assert type(queue).__name__ == "_LockQueue"
    first = Turns(path)
    writers = [_Writer(path, number, order) for number in range(3)]
    with first.turn():
        for writer in writers:
            writer.start()
        assert queue is not None
        assert not queue.is_first(queue.line_up())
        assert order == []
    for writer in writers:
        writer.join(60)

    assert sorted(order) == [0, 1, 2]
    queue.close()


@pytest.mark.parametrize("kind", ["folder", "missing"])
def test_without_a_file_no_one_waits(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "folder"
    if kind == "folder":
        path.mkdir()
    else:
        path = path / "turn"
    mine, other = Turns(path), Turns(path)
    with mine.turn(), other.turn():
        pass
    mine.close()
    other.close()
