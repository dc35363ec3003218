"""`python -m benchmarks.soak --minutes 60 --database sqlite`: run, kill, count, report; exits with 1 at any fault."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.soak.clients import Accepted, Chat, Service, feed_workers, keep_worker, map_batches
from benchmarks.soak.processes import Killer, Place, Series, leftovers, sample
from benchmarks.soak.soaked_project import MARK, answer, environment, read_effects, write_project
from benchmarks.soak.verification import Verdict, verify
from tests.support.openai_server import serve
from tests.support.postgres import missing, start_server, stop_server

LIMITS = {
    "rss_mb": (1.15, 10),
    "fds": (1, 6),
    "threads": (1, 6),
    "wal_mb": (1, 32),
    "tasks": (1, 12),
}
"""By how much a measure may be more at the end than after the warm-up: a factor, and an amount."""


LONG_ENOUGH = 10
"""Minutes after which growth is a fault; before, processes are still warming up."""


@dataclass(frozen=True)
class Options:
    """How long, where, and how much at once.

    Args:
        minutes: How long work is given.
        database: `sqlite` or `postgres`.
        folder: The soak's folder; it is left as it is at the end.
        pace: How often there is work and kills, 1 being about four runs a second.
        seed: What chance begins with.
    """

    minutes: float
    database: str
    folder: Path
    pace: float = 1
    seed: int = 1


def soak(options: Options) -> tuple[Verdict, dict[str, Series]]:
    """Run everything at once, and then count what came of it."""
    with ExitStack() as stack:
        folder = options.folder
        store: list[str] = []
        if options.database == "postgres":
            server = start_server()
            stack.callback(stop_server, server)
            store = ["--store", server.url("soak")]
        write_project(folder / "project")
        base_url, log = stack.enter_context(serve({"soak": answer}))
        place = Place(folder, environment(folder, base_url), store)
        accepted, series, counts = _work(place, options, log)
        (folder / "accepted.json").write_text(json.dumps([asdict(one) for one in accepted]))
        verdict = asyncio.run(_verify(place, accepted))
        files, processes = leftovers(folder, MARK)
        verdict.expect("temporary files left", files, len(files))
        verdict.expect("processes left", processes, len(processes))
        verdict.counts |= counts
    verdict.faults += place.faults
    _judge_growth(verdict, place, series, options.minutes)
    return verdict, series


def _work(
    place: Place, options: Options, log: list[object]
) -> tuple[list[Accepted], dict[str, Series], dict[str, int | str]]:
    pace = options.pace
    services = [Service(place, f"serve{n}", 0.7 / pace, steady=n == 1) for n in (1, 2)]
    chats = [Chat(place, f"chat{n}", 2 / pace, steady=n == 1) for n in (1, 2)]
    mapped: list[Accepted] = []
    queued: list[Accepted] = []
    killer = Killer(place, 20 / pace, options.seed)
    done = threading.Event()
    clients = [(each.name, each.run) for each in (*services, *chats)]
    clients += [
        ("map", lambda: map_batches(place, mapped, 30, 30 / pace)),
        ("queue", lambda: feed_workers(place, queued, 40, 25 / pace)),
        ("killer", killer.run),
    ]
    workers = [(f"worker{n}", lambda n=n: keep_worker(place, f"worker{n}", done, steady=n == 1)) for n in (1, 2)]
    series: dict[str, Series] = {}
    working = place.run_threads(workers)
    running = place.run_threads(clients)
    until = time.monotonic() + 60 * options.minutes
    while time.monotonic() < until:
        time.sleep(min(10, 2 * options.minutes))
        sample(place, series)
        requests = len(log)
        del log[:requests]
        _tell(options, f"{requests} requests, {dict(killer.done)}, {len(place.faults)} faults")
    steady = dict(place.steady)
    place.steady.clear()
    place.stopping.set()
    for thread in running:
        thread.join()
    done.set()
    for thread in working:
        thread.join()
    _, tasks = read_effects(place.folder)
    for name, process in steady.items():
        series[f"{name} tasks"] = Series([float(count) for count in tasks.get(process, [0])])
    accepted = [one for each in (*services, *chats) for one in each.accepted] + mapped + queued
    asked: Counter[str] = Counter()
    for each in services:
        asked += each.asked
    counts: dict[str, int | str] = {f"process {name}": count for name, count in sorted(killer.done.items())}
    counts["processes started"] = place.started.total()
    counts |= {f"service: {name}": count for name, count in asked.items()}
    return accepted, series, counts


async def _verify(place: Place, accepted: list[Accepted]) -> Verdict:
    from llm_do.threads import open_store

    effects, _ = read_effects(place.folder)
    store = open_store(place.root, place.store[1] if place.store else None)
    try:
        return await verify(store, accepted, effects)
    finally:
        await store.aclose()


def _judge_growth(verdict: Verdict, place: Place, series: dict[str, Series], minutes: float) -> None:
    for name, each in sorted(series.items()):
        early, late = each.ends()
        verdict.counts[f"growth of {name}"] = f"{early:.1f} to {late:.1f}, at most {max(each.values):.1f}"
        if minutes >= LONG_ENOUGH and each.grows(*LIMITS[name.rpartition(" ")[2]]):
            verdict.faults.append(f"{name} grows from {early:.1f} to {late:.1f}")
    for file in sorted(place.folder.glob("*.err")):
        if (count := file.read_text().count("Traceback")) > 0:
            verdict.faults.append(f"{count} tracebacks in {file.name}")


def _tell(options: Options, text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {options.database}: {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Read the options, soak, and print what was counted."""
    parser = argparse.ArgumentParser("python -m benchmarks.soak", description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--folder", type=Path, help="where it happens; it is kept. By default a temporary folder")
    parser.add_argument("--pace", type=float, default=1, help="1 is about four runs a second")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.database == "postgres" and (reason := missing()) is not None:
        parser.error(reason)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="llm-do-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        parser.error(f"{folder} isn't empty")
    options = Options(given.minutes, given.database, folder.resolve(), given.pace, given.seed)
    verdict, series = soak(options)
    values = {name: each.values for name, each in series.items()}
    (folder / "series.json").write_text(json.dumps(values))
    for name, count in verdict.counts.items():
        _tell(options, f"{name}: {count}")
    for fault in verdict.faults:
        _tell(options, f"FAULT {fault}")
    if not verdict.faults and given.folder is None:
        shutil.rmtree(folder)
    _tell(options, f"{len(verdict.faults)} faults" + ("" if folder.exists() else "; the folder is removed"))
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
