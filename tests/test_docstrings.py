"""Every docstring example in the package runs and produces its documented output."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import llm_do

PACKAGES = ("llm_do.flows", "llm_do.messages", "llm_do.threads", "llm_do.toolkits")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> list[str]:
    """The modules that have examples."""
    names = ["llm_do", *(info.name for info in pkgutil.walk_packages(llm_do.__path__, "llm_do."))]
    return sorted(name for name in names if ">>>" in source_of(name))


def source_of(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@cache
def public_names() -> dict[str, Any]:
    """Everything that a reader of the examples can import."""
    packages = [llm_do, *map(importlib.import_module, PACKAGES)]
    return {each: getattr(package, each) for package in packages for each in package.__all__}


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = importlib.import_module(name)
    (tmp_path / "examples" / "greeter").mkdir(parents=True)
    (tmp_path / "examples" / "greeter" / "main.agent").write_text("---\nname: main\n---\nGreet the person.\n")
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    output: list[str] = []
    # Most docstrings have no example: the names that one may use are only prepared for those that do.
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name, globs={}):
        if test.examples:
            test.globs = {**public_names(), **vars(module)}
            runner.run(test, compileflags=0, out=output.append)  # as in a shell: without the module's own `__future__`

    assert "".join(output) == ""
