"""The pytest plugin: each test in a `*.test.yaml` file of an llm-do project is an item.

pytest loads it in every project of an environment that llm-do is installed in. So nothing is imported here, and files
are looked at only if their names fit; the rest is in `llm_do.pytest_plugin.items`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["pytest_addoption", "pytest_collect_file", "pytest_configure", "pytest_report_collectionfinish"]

_KEYS = ("agent_files", "python_files", "entry", "flows")
"""Keys of a manifest; other programs have files named `project.json` too."""

_MOST = 1_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("llm-do")
    group.addoption(
        "--llm-do-record",
        action="store_true",
        help="Ask the models in llm-do's tests, and record their answers. This costs what the models cost.",
    )
    group.addoption(
        "--llm-do-replay",
        action="store_true",
        help="Run llm-do's tests durably, and replay each at once: code that isn't the same twice fails.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that exclude each other."""
    if config.getoption("--llm-do-record") and config.getoption("--llm-do-replay"):
        import pytest

        raise pytest.UsageError(
            "--llm-do-record and --llm-do-replay exclude each other: record first, then run again with --llm-do-replay"
        )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a test file of an llm-do project."""
    if not file_path.name.endswith(".test.yaml"):
        return None
    folder = _project_of(file_path)
    if folder is None:
        return None
    from llm_do.pytest_plugin.items import collect_file

    return collect_file(parent, file_path, folder)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say what recording will ask for, before it begins."""
    if not config.getoption("--llm-do-record"):
        return []
    from llm_do.pytest_plugin.items import describe_recording

    return describe_recording(items)


def _project_of(file: Path) -> Path | None:
    """The folder of the project that a file is a test of; None if it is none."""
    for folder in file.parents:
        if folder.name == "tests" and _is_manifest(folder.parent / "project.json"):
            inner = file.relative_to(folder).parts[:-1]
            hidden = any(name.startswith((".", "__")) for name in inner) or inner[:1] == ("cassettes",)
            return None if hidden else folder.parent
    return None


def _is_manifest(file: Path) -> bool:
    """Whether a file is a manifest of llm-do, be it a broken one."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MOST)
    except OSError:
        return False
    import json

    try:
        data: object = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return re.search(rf'"({"|".join(_KEYS)})"\s*:', text) is not None
    return isinstance(data, dict) and any(key in data for key in _KEYS)
