"""Worker threads are reused while they are idle, but not by a fork, which doesn't have them."""

from __future__ import annotations

import os
import signal
import time

import pytest

from llm_do.concurrency.worker_threads import WORKERS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system can't fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_a_fork_of_a_process_with_idle_threads_starts_its_own() -> None:
    for _ in range(3):
        WORKERS.submit(int).result(timeout=30)
        time.sleep(0.01)  # the thread is idle a moment after its result is there

    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(WORKERS.submit(lambda: 7).result())
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 7
