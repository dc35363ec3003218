"""How thorough property tests are: a few examples among the quick tests, many among the slow ones (`-m slow`).

And that a run of the tests in the background, which a shell starts with Ctrl-C ignored, can test Ctrl-C all the same.
"""

from __future__ import annotations

import signal
import threading

import pytest
from hypothesis import is_hypothesis_test, settings

# Without deadlines: how long one example takes says nothing on a busy machine.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=300, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples there are, before tests are imported, and let what tests start hear Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("thorough" if config.option.markexpr == "slow" else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the property tests too when slow tests are asked for, which have many examples then."""
    if config.option.markexpr == "slow":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.slow)
