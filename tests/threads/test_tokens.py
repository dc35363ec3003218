"""Ids of messages and revisions are unique, in forked processes too."""

from __future__ import annotations

import subprocess
import sys

from llm_do.threads.store.tokens import AT_ONCE, new_token

FORKED = """
import os
from llm_do.threads.store.tokens import new_token
new_token()
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, " ".join(new_token() for _ in range(10)).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 10_000).decode(), *(new_token() for _ in range(10)))
"""


def test_tokens_are_unique_and_of_one_form() -> None:
    tokens = [new_token() for _ in range(3 * AT_ONCE)]

    assert len(set(tokens)) == len(tokens)
    assert {len(bytes.fromhex(token)) for token in tokens} == {16}


def test_a_forked_process_has_tokens_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKED], text=True, capture_output=True, timeout=120)

    assert ended.returncode == 0, ended.stderr
    assert len(set(ended.stdout.split())) == 20
