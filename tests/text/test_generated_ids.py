"""Generated ids are unique, in forked processes too, and those of one moment lie together."""

from __future__ import annotations

import subprocess
import sys

import pytest

from llm_do.text.generated_ids import AT_ONCE, new_id, short_run_id

FORKED = """
import os
from llm_do.text.generated_ids import new_id
new_id()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, " ".join(new_id() for _ in range(10)).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 10_000).decode(), *(new_id() for _ in range(10)))
"""


def test_ids_are_unique_and_of_one_form() -> None:
    ids = [new_id() for _ in range(3 * AT_ONCE)]

    assert len(set(ids)) == len(ids)
    assert {len(bytes.fromhex(each)) for each in ids} == {16}


def test_ids_of_one_moment_lie_together_and_are_still_told_apart_by_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_780_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    earlier = [new_id() for _ in range(50)]
    now += 0.1
    later = [new_id() for _ in range(50)]

    assert max(earlier) < min(later)
    assert len({short_run_id(each) for each in (*earlier, *later)}) == 100


def test_a_forked_process_has_ids_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKED], text=True, capture_output=True, timeout=120)

    assert ended.returncode == 0, ended.stderr
    assert len(set(ended.stdout.split())) == 20
