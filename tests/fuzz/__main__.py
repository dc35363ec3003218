"""`python -m tests.fuzz [TARGET ...]`: try inputs until the time is over or one breaks a promise (exit code 1)."""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from tests.fuzz.mutation import fuzz
from tests.fuzz.targets import TARGETS, seeds


def main(arguments: list[str]) -> None:
    """Fuzz the targets named, or all, one after the other.

    Raises:
        Exception: What a target raised, with the input and the seed as notes.
        SystemExit: There is no such target or option, or help was asked for.
    """
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__, allow_abbrev=False)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all of them by default")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (60)")
    parser.add_argument("--seed", type=int, default=None, help="the same one gives the same inputs")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.targets if name not in TARGETS]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    for name in given.targets or TARGETS:
        ends, tried = time.monotonic() + given.seconds, 0

        def goes_on(count: int, ends: float = ends) -> bool:
            nonlocal tried
            tried = count
            return time.monotonic() < ends

        try:
            different = fuzz(TARGETS[name], seeds(name), Random(seed), goes_on)
        except Exception as error:
            error.add_note(f"{name} breaks a promise, with --seed {seed}")
            raise
        print(f"{name}: {tried} inputs, of which {different} different things came")


if __name__ == "__main__":
    main(sys.argv[1:])
