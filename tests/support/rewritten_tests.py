"""Test files are compiled once for all the processes that run tests, not once in each.

pytest rewrites the assertions of a file before it compiles it, and keeps the result beside the file. In a fresh
checkout every worker would find none, and do all of that itself while the others do the same. So each begins with a
part of the files, and finds what the others have kept when it collects the rest.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import assertstate_key

__all__ = ["rewrite_a_share"]


def rewrite_a_share(config: pytest.Config) -> None:
    """In a worker, rewrite its share of the test files in the folders that are collected."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or assertstate_key not in config.stash:
        return
    folders = [Path(config.invocation_params.dir, arg) for arg in config.args]
    files = sorted(file for folder in folders if folder.is_dir() for file in folder.rglob("test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        _rewrite(file, config)


def _rewrite(file: Path, config: pytest.Config) -> None:
    kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
    # Whether one that is there is outdated is found out when it is read, and what is no Python when it is collected.
    if not kept.exists() and rewrite.try_makedirs(kept.parent):
        with suppress(SyntaxError, ValueError):
            source, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[assertstate_key], code, source, kept)
