"""Generates inputs for fuzz targets by mutating seeds.

A target takes bytes, raises when a promise is broken, and returns what came of them, such as the codes of findings. An
input of which something new came is a seed from then on, so that mutation goes where the code has not been.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Sequence
from random import Random

__all__ = ["Target", "fuzz", "mutated"]

Target = Callable[[bytes], Hashable]

LONGEST = 4_000
"""Bytes of an input."""

SLOWEST = 5.0
"""The processor seconds allowed for an input of this length: a thousand times the usual."""

_TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")
_ODD = (
    b"\x00",
    b"\r",
    b"\xff",
    b"\xe2\x80\xae",
    b"\xc2\x85",
    b"\xef\xbb\xbf",
    b"\x1b[31m",
    b"'",
    b'"',
    b"\\",
    b"1e999",
)


def fuzz(target: Target, seeds: Sequence[bytes], random: Random, goes_on: Callable[[int], bool]) -> int:
    """Give a target its seeds, then mutations of them.

    Args:
        target: What is tried.
        seeds: Inputs to begin with, at least one.
        random: Where chance comes from: the same one gives the same inputs.
        goes_on: Asked with the number of inputs so far whether another one is tried.

    Returns:
        How many different things came of the inputs.

    Raises:
        Exception: What the target raised, or that it took too long, with the input as a note.
    """
    pool = list(seeds)
    seen: set[Hashable] = set()
    tried = 0
    while tried < len(seeds) or goes_on(tried):
        data = seeds[tried] if tried < len(seeds) else mutated(pool, random)
        tried += 1
        begun = time.process_time()
        try:
            came = target(data)
            assert time.process_time() - begun < SLOWEST, "it took too long"
        except Exception as error:
            error.add_note(f"the input was {data!r}")
            raise
        if came not in seen:
            seen.add(came)
            pool.append(data)
    return len(seen)


def mutated(pool: Sequence[bytes], random: Random) -> bytes:
    """One of the pool after one to four changes."""
    data = random.choice(pool)
    for _ in range(random.randint(1, 4)):
        start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
        match random.randrange(6):
            case 0:  # leave something out
                data = data[:start] + data[end:]
            case 1:  # repeat something
                data = data[:start] + data[start:end] * random.choice((2, 3, 50)) + data[end:]
            case 2:  # put a piece of another one there
                data = data[:start] + random.choice(_tokens(random.choice(pool))) + data[start:]
            case 3:  # replace a piece by a piece of another one
                tokens = _tokens(data)
                tokens[random.randrange(len(tokens))] = random.choice(_tokens(random.choice(pool)))
                data = b"".join(tokens)
            case 4:  # put something odd there
                data = data[:start] + random.choice(_ODD) + data[start:]
            case _:  # try another one
                data = data[:start] + random.choice(pool)[end:]
        data = data[:LONGEST]
    return data


def _tokens(data: bytes) -> list[bytes]:
    return _TOKEN.findall(data) or [b""]
