from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.toolsets.shell.support import git


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a few files, which `project` copies: making one takes three processes."""
    root = tmp_path_factory.mktemp("repository")
    (root / "src").mkdir()
    (root / "src" / "main.py").write_text("import os  # TODO tidy\nprint('hello')\n")
    (root / "notes.txt").write_text("pear\napple\npear\n")
    (root / "-n").write_text("a name like an option\n")
    (root / "tools.py").write_text("x = 1\n")
    (root / ".env").write_text("KEY=secret-of-env\n")
    (root / ".gitignore").write_text(".env\nleak\nleakdir\n")
    git(root, "init", "-q", "-b", "main", "--template=")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "First words")
    (root / "notes.txt").write_text("pear\napple\nplum\n")
    os.utime(root / "notes.txt", (1, 1))
    return root


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """A repository of the test's own, with secrets next to it and links to them."""
    root = tmp_path / "project"
    shutil.copytree(repository, root)
    (tmp_path / "secret.txt").write_text("secret-outside\n")
    (root / "leak").symlink_to(tmp_path / "secret.txt")
    (root / "leakdir").symlink_to(tmp_path)
    return root


CODE = {
    "project.json": '{"version": 1}\n',
    "main.agent": "---\nname: main\n---\nHelp.\n",
    "tools.py": "x = 1\n",
    "src/deep/er/helper.py": "y = 1\n",
    "src/notes.txt": "notes\n",
    "conftest.py": "\n",
    ".env": "KEY=secret-of-env\n",
    "keys/server.pem": "secret-of-pem\n",
    ".llm-do/state.db": "words of ann\n",
    ".llm-do/artifacts/a.txt": "a long result\n",
    "build/old.o": "old\n",
    "data.txt": "data\n",
}
"""A project's files; those below `build` and the texts aren't code."""


@pytest.fixture
def none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test as on a machine without a sandbox."""
    from llm_do.toolsets.shell.sandbox import SandboxStatus

    found = SandboxStatus(active=False, backend=None, reason="none in this test")
    monkeypatch.setattr("llm_do.toolsets.shell.sandbox.command_sandbox.status", lambda: found)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in a repository, which `root` copies."""
    root = tmp_path_factory.mktemp("template") / "project"
    for name, text in CODE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text(".llm-do\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "First")
    return root


@pytest.fixture
def root(tmp_path: Path, template: Path) -> Path:
    """A project of the test's own."""
    return Path(shutil.copytree(template, tmp_path / "project", symlinks=True))
