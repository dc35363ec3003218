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
