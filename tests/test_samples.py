"""The mark `sample`: which rows of a table are quick tests."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")

TABLE = """
import pytest

@pytest.mark.sample(2)
@pytest.mark.parametrize("row", range(6))
def test_row(row):
    pass

@pytest.mark.sample(9)
@pytest.mark.parametrize("row", range(2))
def test_short(row):
    pass
"""

pytest_plugins = ["pytester"]


def test_every_row_is_either_quick_or_slow(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CONFTEST.parents[1]))
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers =\n    sample\n    slow\n")
    pytester.makepyfile(TABLE)
    chosen = {}
    for kind in ("not slow", "slow"):
        names = pytester.inline_run("-m", kind, "-p", "no:cacheprovider").listoutcomes()[0]
        chosen[kind] = [report.nodeid.partition("::")[2] for report in names]
    assert chosen["not slow"] == ["test_row[0]", "test_row[3]", "test_short[0]", "test_short[1]"]
    assert chosen["slow"] == ["test_row[1]", "test_row[2]", "test_row[4]", "test_row[5]"]
