"""What gives a soak its work: a client of the service, a person who chats, and batches of inputs."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from benchmarks.soak.processes import Place
from benchmarks.soak.soaked_project import expected

__all__ = ["Accepted", "Chat", "Service", "feed_workers", "keep_worker", "map_batches"]

PATIENCE = 180
"""Seconds that anything may take on a busy machine."""

OPEN = ("queued", "running", "stopped", "suspended")


@dataclass
class Accepted:
    """An input that was accepted, and what became of it.

    Args:
        word: The input.
        thread: Its thread.
        status: How it ended, as whoever gave it was told; None if that is unknown, since the process was killed.
        run_id: The run's id, where the client was told.
        output: The result.
    """

    word: str
    thread: str | None
    status: str | None = None
    run_id: str | None = None
    output: object = None


class Client:
    """Someone who gives a process one input after the other.

    Args:
        place: Where.
        name: The process's name, with which its words begin.
        pause: Seconds between inputs.
        steady: Whether it is never killed, so that its growth can be measured.
    """

    def __init__(self, place: Place, name: str, pause: float, *, steady: bool) -> None:
        self.place = place
        self.name = name
        self.pause = pause
        self.steady = steady
        self.accepted: list[Accepted] = []


class Service(Client):
    """`llm-do serve` and one client of it, who begins a run when the one before has ended."""

    def __init__(self, place: Place, name: str, pause: float, *, steady: bool) -> None:
        super().__init__(place, name, pause, steady=steady)
        self.asked = Counter[str]()
        self._process: subprocess.Popen[str] | None = None
        self._address = self._key = ""

    def run(self) -> None:
        """Go on until the soak stops, and then until the last run has ended."""
        number = 0
        while not self.place.stopping.wait(self.pause):
            number += 1
            thread = f"{self.name}-thread{number % 4}" if number % 3 else None
            one = Accepted(f"{self.name}-{number}", thread)
            if self._begin(one, durable=number % 2 == 0):
                self._follow(one)
        if self._process is not None:
            self.place.spare(self.name)
            self._process.terminate()
            self._process.communicate(timeout=PATIENCE)

    def _begin(self, one: Accepted, *, durable: bool) -> bool:
        """Begin a run; an input without an answer may have been accepted all the same."""
        if not self._is_up() and not self._start():
            return False
        self.accepted.append(one)
        try:
            body = {"input": one.word, "durable": durable, **({"thread": one.thread} if one.thread else {})}
            one.run_id = self._ask("/api/runs", body)["run_id"]
        except (OSError, HTTPException):
            self.asked["without an answer"] += 1
            return False
        return True

    def _follow(self, one: Accepted) -> None:
        """Wait until a run has ended; continue it, and answer its questions, where that is needed."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            time.sleep(0.1)
            try:
                if not self._is_up() and not self._start():
                    continue
                found = self._ask(f"/api/runs/{one.run_id}/questions")
                one.status = found["status"]
                if one.status not in OPEN:
                    return
                for each in found["questions"]:
                    self.asked["questions"] += 1
                    answer = {"answer": "fail", "digest": each["digest"]}
                    self._ask(f"/api/runs/{one.run_id}/questions/{each['id']}", answer)
                if one.status == "stopped":
                    self.asked["resumes"] += 1
                    self._ask(f"/api/runs/{one.run_id}/resume", {})
            except (OSError, HTTPException) as error:
                if isinstance(error, urllib.error.HTTPError):
                    self.asked[f"HTTP {error.code}"] += 1
        raise TimeoutError(f"run {one.run_id} of {one.word} is {one.status} after {PATIENCE} s")

    def _is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _start(self) -> bool:
        """Start the service; returns whether it is there, and wasn't killed before it was."""
        process = self.place.start(self.name, "serve", ".", "--port", "0", "--no-browser", steady=self.steady)
        assert process.stdout is not None
        self._process = process
        self._address, _, self._key = process.stdout.readline().strip().partition("/#key=")
        return bool(self._key)

    def _ask(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._address + path, data, headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as found:
            return json.load(found)


class Chat(Client):
    """`llm-do chat` on a thread of its name, and someone who writes a line when the one before has been answered."""

    def run(self) -> None:
        """Go on until the soak stops."""
        number = 0
        process: Any = None
        while not self.place.stopping.wait(self.pause):
            number += 1
            if process is None or process.poll() is not None:
                process = self.place.start(self.name, "chat", ".", "--thread", self.name, "-q", steady=self.steady)
            one = Accepted(f"{self.name}-{number}-", self.name)
            self.accepted.append(one)
            try:
                process.stdin.write(f"{one.word}\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                continue
            if line.strip():
                one.output = line.strip()
                one.status = "completed" if one.output == expected(one.word) else f"wrong: {one.output}"
        if process is not None:
            self.place.spare(self.name)
            process.communicate(timeout=PATIENCE)


def _inputs(place: Place, name: str, count: int) -> tuple[Path, list[Accepted]]:
    file = place.folder / f"{name}.jsonl"
    words = [f"{name}-{number}" for number in range(count)]
    file.write_text("".join(f"{json.dumps(word)}\n" for word in words))
    return file, [Accepted(word, None) for word in words]


def _collect(place: Place, name: str, process_name: str, file: Path, inputs: list[Accepted], *options: str) -> int:
    """Print a batch's results, again after each kill, and note them; returns how many attempts it took."""
    attempts = 0
    while True:
        attempts += 1
        output = file.with_suffix(".out")
        with output.open("w") as out:
            words = ["map", ".", str(file), "--batch", name, "--in-flight", "fail", "-q", *options]
            process = place.start(process_name, *words, out=out)
            process.wait(PATIENCE)
        if process.returncode in (0, 1):
            break
        if process.returncode != -9:
            place.faults.append(f"{name}: `map` ended with {process.returncode}; see {process_name}.err")
            return attempts
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    if [line["line"] for line in lines] != list(range(1, len(inputs) + 1)):
        place.faults.append(f"{name}: {len(lines)} lines for {len(inputs)} inputs")
    for one, line in zip(inputs, lines, strict=False):
        one.status, one.output, one.run_id = line["status"], line.get("output"), f"{name}-{line['line']}"
    return attempts


def map_batches(place: Place, accepted: list[Accepted], size: int, pause: float) -> None:
    """Run one batch after the other with `map`, which may be killed, until the soak stops."""
    number = 0
    while not place.stopping.wait(pause if number else 0):
        number += 1
        file, inputs = _inputs(place, f"map{number}", size)
        accepted += inputs
        _collect(place, f"map{number}", "map", file, inputs, "--concurrency", "4")


def feed_workers(place: Place, accepted: list[Accepted], size: int, pause: float) -> None:
    """Put batches on the queue until the soak stops, and collect their results once all are there."""
    waiting: list[tuple[str, Path, list[Accepted]]] = []
    while not place.stopping.wait(pause if waiting else 0):
        name = f"queue{len(waiting) + 1}"
        file, inputs = _inputs(place, name, size)
        put = place.start("detach", "map", ".", str(file), "--batch", name, "--detach", "-q")
        place.spare("detach")
        _, _ = put.communicate(timeout=PATIENCE)
        if put.returncode != 0:
            place.faults.append(f"{name}: `map --detach` ended with {put.returncode}; see detach.err")
            continue
        accepted += inputs
        waiting.append((name, file, inputs))
    for name, file, inputs in waiting:
        _collect(place, name, "collect", file, inputs)


def keep_worker(place: Place, name: str, done: threading.Event, *, steady: bool) -> None:
    """Keep a worker running until the work is done; one that is killed is started again after a while."""
    chance = random.Random(name)
    process: Any = None
    while not done.wait(0.5):
        if process is None or process.poll() is not None:
            if process is not None and process.returncode not in (0, -9):
                place.faults.append(f"{name} ended with {process.returncode}; see {name}.err")
            done.wait(0 if process is None else chance.uniform(0, 5))
            process = place.start(name, "worker", ".", "--concurrency", "4", out=subprocess.DEVNULL, steady=steady)
    if process is not None:
        place.spare(name)
        process.terminate()
        process.communicate(timeout=PATIENCE)
