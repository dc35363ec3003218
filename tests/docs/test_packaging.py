"""Dependencies: pyproject.toml, constraint files, README and Makefile agree."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llm_do import _extras as extras
from tests.support.tables import each_row

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OWN = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
DECLARED = PROJECT["project"]["optional-dependencies"]
EXTRAS = [Requirement(line) for extra, lines in DECLARED.items() if extra != "all" for line in lines]
TOOLS = [Requirement(line) for group in PROJECT["dependency-groups"].values() for line in group]

# Packages that a listed package installs, in the version it requires.
BROUGHT = {
    "anyio": "pydantic-ai-slim",
    "anthropic": "pydantic-ai-slim[anthropic]",
    "fastmcp-slim": "pydantic-ai-slim[mcp]",
    "google-genai": "pydantic-ai-slim[google]",
    "httpx": "pydantic-ai-slim[google]",
    "opentelemetry-api": "pydantic-ai-slim",
    "pydantic-core": "pydantic",
}


def constraints(name: str) -> dict[str, str]:
    """A constraint file as names and versions."""
    lines = (ROOT / "constraints" / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("name", ["tested.txt", "lowest.txt"])
def test_a_constraint_file_holds_exact_versions_and_nothing_else(name: str) -> None:
    lines = (ROOT / "constraints" / name).read_text(encoding="utf-8").splitlines()

    assert [line for line in lines[1:] if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []


@each_row("requirement", [*OWN, *EXTRAS, *TOOLS])
def test_the_tested_version_of_each_dependency_is_in_its_range(requirement: Requirement) -> None:
    assert constraints("tested.txt")[canonicalize_name(requirement.name)] in requirement.specifier


@each_row("requirement", [*OWN, *EXTRAS])
def test_the_oldest_version_tested_is_the_oldest_that_is_allowed(requirement: Requirement) -> None:
    lowest = constraints("lowest.txt")[canonicalize_name(requirement.name)]
    bound = next(part.version for part in requirement.specifier if part.operator == ">=")

    assert lowest in requirement.specifier
    assert lowest.startswith(bound)


@each_row("requirement", [*OWN, *EXTRAS, *TOOLS])
def test_each_dependency_has_an_upper_bound(requirement: Requirement) -> None:
    assert any(part.operator in ("<", "<=") for part in requirement.specifier)


@pytest.mark.slow
def test_each_package_that_is_imported_is_listed_or_comes_with_one_that_is() -> None:
    graph = grimp.build_graph("llm_do", include_external_packages=True, cache_dir=None)
    outside = {module for module in graph.modules if graph.is_module_squashed(module)} - set(sys.stdlib_module_names)
    # Whoever loads the plugin has pytest; nothing else may import it.
    assert all(name.startswith("llm_do.pytest_plugin") for name in graph.find_modules_that_directly_import("pytest"))
    outside.discard("pytest")
    assert "pydantic_ai" in outside
    owners = packages_distributions()
    names = {module: {canonicalize_name(name) for name in owners[module]} for module in outside}
    listed = {canonicalize_name(requirement.name) for requirement in [*OWN, *EXTRAS]}
    brought = {name for name, by in BROUGHT.items() if _is_listed(Requirement(by))}

    assert {module for module in outside if not names[module] & (listed | brought)} == set()


def _is_listed(by: Requirement) -> bool:
    return any(by.name == other.name and by.extras <= other.extras for other in [*OWN, *EXTRAS])


def private_imports(text: str) -> list[str]:
    """The names under an underscore that a module imports from other packages, for type checkers too."""
    found: list[str] = []
    for module, several, one in re.findall(r"(?m)^[ \t]*from ([\w.]+) import (?:\(([^)]*)\)|(.*))", text):
        names = [name.split()[0] for name in re.sub(r"#.*", "", several or one).split(",") if name.strip()]
        found += [f"{module}.{name}" for name in names]
    for line in re.findall(r"(?m)^[ \t]*import ([\w., ]+)", text):
        found += [name.split()[0] for name in line.split(",")]
    own = ("llm_do.", "tests.", "benchmarks.", "scripts.", "__future__.")
    return [name for name in found if not name.startswith(own) and re.search(r"(^|\.)_(?!_)", name)]


def test_other_packages_are_imported_from_their_public_modules() -> None:
    assert private_imports("from a import (\n    _b,  # c, d\n    e as _e,\n)\nimport f, g._h\n") == ["a._b", "g._h"]
    files = [path for top in ("llm_do", "tests", "benchmarks", "scripts") for path in (ROOT / top).rglob("*.py")]
    found = {path: private_imports(path.read_text(encoding="utf-8")) for path in files}

    assert {path.relative_to(ROOT).as_posix(): names for path, names in found.items() if names} == {}


def test_the_extra_all_has_every_other_one_and_each_says_what_it_installs() -> None:
    (everything,) = (Requirement(line) for line in DECLARED["all"])

    assert (everything.name, everything.extras) == ("llm-do", {*DECLARED} - {"all"})
    assert set(extras.EXTRAS) == everything.extras
    owners = packages_distributions()
    for name, (package, modules) in extras.EXTRAS.items():
        listed = [Requirement(line) for line in DECLARED[name]]
        assert all(extras.extra_of(module) == name for module in modules)
        assert package in {canonicalize_name(each.name) for each in listed} | BROUGHT.keys()
        assert canonicalize_name(package) in {canonicalize_name(each) for each in owners[modules[0].split(".")[0]]}


def test_the_readme_lists_every_extra() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE)[: len(DECLARED)] == [*DECLARED]


def test_the_tests_and_ci_install_every_extra() -> None:
    for name in ("Makefile", ".ci/run"):
        lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if "--group test" in line]
        assert lines, name
        assert all("'.[all]'" in line for line in lines)


def test_the_readme_shows_all_that_the_demonstration_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^demo:\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    for name, value in re.findall(r"^(PYTHON|VENV) \?= (.+)$", makefile, re.MULTILINE):
        recipe = recipe.replace("$(BIN)", "$(VENV)/bin").replace(f"$({name})", value)

    assert "".join(line.removeprefix("\t") for line in recipe.splitlines(keepends=True)) in (
        ROOT / "README.md"
    ).read_text(encoding="utf-8")
