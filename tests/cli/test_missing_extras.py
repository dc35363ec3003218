"""A plain installation does all that needs no extra, and says what each extra is needed for, and how to install it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llm_do import _extras as extras
from scripts import installs
from tests.cli.cli_processes import REPOSITORY, environment

AGENT = "---\nname: main\n---\nHelp.\n"
MANIFEST = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}
SERVER = {"kb": {"type": "mcp", "command": ["python3", "-c", "pass"]}}

PROJECTS: dict[str, dict[str, str]] = {
    "plain": {
        "main.agent": "---\nname: main\nmodel: script:answers.yaml\n---\nHelp.\n",
        "answers.yaml": "- text: It works.\n",
        "project.json": json.dumps(MANIFEST),
    },
    "google": {"main.agent": "---\nname: main\nmodel: google:some-model\n---\nHelp.\n"},
    "local": {"main.agent": "---\nname: main\nmodel: local\n---\nHelp.\n"},
    "server": {
        "main.agent": "---\nname: main\nmodel: test\ntoolsets: [kb]\n---\nHelp.\n",
        "project.json": json.dumps({**MANIFEST, "toolsets": SERVER}, indent=1),
    },
    "database": {
        "main.agent": AGENT,
        "project.json": json.dumps({**MANIFEST, "threads": {"store": "postgresql://localhost/threads"}}, indent=1),
    },
    "service": {
        "main.agent": AGENT,
        "project.json": json.dumps({**MANIFEST, "python_files": ["tools.py"]}),
        "tools.py": "from llm_do.web import Service\n",
    },
}

ROWS: Mapping[str, tuple[str, list[str], int, str, str]] = {
    "a model of Google, linked": ("google", ["check"], 0, "google", "main.agent:3:8: warning[LD714]"),
    "a model of Google, run": ("google", ["run", "hi"], 7, "google", "error: the provider 'google' needs"),
    "the local model, linked": ("local", ["check"], 0, "local", "main.agent:3:8: warning[LD714]"),
    "the local model, run": ("local", ["run", "hi"], 7, "local", "error: the local model needs"),
    "a server, linked": ("server", ["check"], 0, "mcp", "project.json:11:12: warning[LD714]"),
    "a server, run": ("server", ["run", "hi", "--trust"], 1, "mcp", "error: a toolset of type `mcp` needs"),
    "a server, listed": ("server", ["tools", "--connect", "--trust"], 1, "mcp", "a toolset of type `mcp` needs"),
    "mcp": ("plain", ["mcp"], 2, "mcp", "error: `llm-do mcp` needs"),
    "serve": ("plain", ["serve", "--no-browser"], 2, "service", "error: `llm-do serve` needs"),
    "the service in Python": ("service", ["check", "--trust"], 3, "service", "tools.py:1:1: error[LD302]"),
    "--otel": ("plain", ["run", "hi", "--otel"], 2, "otel", "error: `--otel` needs"),
    "--store": ("plain", ["run", "hi", "--store", "postgresql://h/d"], 2, "postgres", "error: a store in PostgreSQL"),
    "runs --store": ("plain", ["runs", "list", "--store", "postgresql://h/d"], 1, "postgres", "a store in PostgreSQL"),
    "threads.store": ("database", ["check"], 3, "postgres", "project.json:10:12: error[LD190]"),
}
"""A project, arguments, the exit code, the extra that is missing, and how the message begins."""

BLOCKER = """
import sys
from importlib.abc import MetaPathFinder
MODULES = {modules!r}
class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in MODULES):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""
"""A `sitecustomize` that makes modules of extras count as missing, in this process and those that it starts."""


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projects")
    for name, files in PROJECTS.items():
        for file, text in files.items():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / file).write_text(text)
    return folder


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("blocked")
    modules = sorted(module for extra in extras.EXTRAS.values() for module in extra.modules)
    (folder / "sitecustomize.py").write_text(BLOCKER.format(modules=modules))
    return environment(GOOGLE_API_KEY="k", PYTHONPATH=f"{folder}{os.pathsep}{REPOSITORY}")


def said(command: list[str], cwd: Path, env: Mapping[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, f"{done.stdout}{done.stderr}"


@pytest.mark.sample(2)
@pytest.mark.parametrize("row", ROWS)
def test_what_needs_an_extra_says_so_with_its_place_and_the_command(
    row: str, projects: Path, blocked: Mapping[str, str]
) -> None:
    project, arguments, code, extra, start = ROWS[row]
    ended, text = said([sys.executable, "-m", "llm_do.cli", *arguments], projects / project, blocked)

    assert ended == code, text
    assert start in text
    assert f"needs the extra `{extra}`, which isn't installed" in text
    assert re.search(rf"nstall it with `[^`]*\[{extra}\]'?`", text), text
    assert "Traceback" not in text


@pytest.mark.slow
def test_the_doctor_lists_the_extras_that_are_missing(projects: Path, blocked: Mapping[str, str]) -> None:
    code, text = said([sys.executable, "-m", "llm_do.cli", "doctor"], projects / "plain", blocked)

    assert code == 0
    for extra in extras.EXTRAS:
        assert re.search(rf"note +extra {extra} +not installed\n.*\[{extra}\]", text), text


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs of an environment with llm-do and what it requires, but no extra."""
    folder = tmp_path_factory.mktemp("base")
    try:
        programs = installs.install(folder / "env")
    except subprocess.CalledProcessError as error:
        if not re.search(r"No matching distribution|Could not find a version|connection|resolution", error.stderr):
            raise AssertionError(error.stderr) from error
        shutil.rmtree(folder / "env")
        programs = copied(folder / "env")  # there is no index here
    yield programs
    shutil.rmtree(folder, ignore_errors=True)


def copied(folder: Path) -> Path:
    """An environment with what is installed here of llm-do's own requirements, without an index."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    target = Path(
        subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True).strip()
    )
    for distribution in required():
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target / file)
    (target / "llm_do_checkout.pth").write_text(f"{REPOSITORY}\n")
    program = folder / "bin" / "llm-do"
    program.write_text(f"#!{python}\nimport sys\nfrom llm_do.cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return folder / "bin"


def required() -> list[importlib.metadata.Distribution]:
    """The installed distributions that pyproject.toml requires without any extra, and what those require."""
    found: dict[str, importlib.metadata.Distribution] = {}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        for extra in {"", *requirement.extras}:
            key = (canonicalize_name(requirement.name), extra)
            if key not in seen:
                seen.add(key)
                found[key[0]] = importlib.metadata.distribution(requirement.name)
                lines = map(Requirement, found[key[0]].requires or ())
                waiting += [each for each in lines if each.marker is None or each.marker.evaluate({"extra": extra})]
    return list(found.values())


@pytest.mark.slow
def test_the_base_alone_is_small_and_runs_without_any_other_http_client(base: Path, projects: Path) -> None:
    names = {canonicalize_name(name) for name in installs.distributions(base)}
    assert len(names) < 50, sorted(names)
    assert names.isdisjoint({"httpx", "requests", "urllib3", "aiohttp", "mcp", "google-genai", "starlette"})

    env = environment(PYTHONPATH="")
    program = str(base / "llm-do")
    code, text = said([program, "--help"], projects, env)
    assert (code, text.startswith("Usage: llm-do")) == (0, True)
    assert said([program, "check", "--strict"], projects / "plain", env)[0] == 0
    assert said([program, "run", "hi", "--output", "text", "--quiet"], projects / "plain", env) == (0, "It works.\n")
    script = "import sys\nfrom llm_do.cli.app import run\nrun(['run', 'hi', '--quiet'])\nprint(*sorted(sys.modules))"
    code, text = said([str(base / "python"), "-c", script], projects / "plain", env)
    assert "openai" not in text.split()
    assert {"httpx", "requests", "urllib3", "aiohttp"}.isdisjoint(text.split())
    for model in ("pydantic_ai.models.openai", "pydantic_ai.models.anthropic", "llm_do.models.providers.chat.client"):
        script = f"import sys, {model}\nprint(*sorted(sys.modules))"
        code, text = said([str(base / "python"), "-c", script], projects, env)
        assert code == 0, text
        assert {"httpx", "requests", "urllib3", "aiohttp"}.isdisjoint(text.split())


@pytest.mark.slow
def test_in_the_base_alone_each_missing_extra_is_named(base: Path, projects: Path) -> None:
    env = environment(GOOGLE_API_KEY="k", PYTHONPATH="")
    for row, (project, arguments, code, extra, start) in ROWS.items():
        ended, text = said([str(base / "llm-do"), *arguments], projects / project, env)
        assert (row, ended) == (row, code), text
        assert start in text, row
        assert f"needs the extra `{extra}`, which isn't installed" in text, row
