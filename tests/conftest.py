"""How thorough property tests are: a few examples among the quick tests, many among the slow ones (`-m slow`)."""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test, settings

# Without deadlines: how long one example takes says nothing on a busy machine.
settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("thorough", max_examples=300, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples there are, before tests are imported."""
    settings.load_profile("thorough" if config.option.markexpr == "slow" else "quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the property tests too when slow tests are asked for, which have many examples then."""
    if config.option.markexpr == "slow":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.slow)
