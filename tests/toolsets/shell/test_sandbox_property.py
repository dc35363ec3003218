"""No command line changes what the next link would load: made at random, run for real, and compared by content."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from llm_do.files.code_files import CodeFiles
from llm_do.files.code_tree import CodeTree
from llm_do.files.unreviewed import is_below, unreviewed_files
from tests.support.tables import sampled
from tests.toolsets.shell.support import configured, run

CODE = (
    "project.json",
    "main.agent",
    "tools.py",
    "src/app.py",
    "src/deep/er/helper.py",
    "tests/conftest.py",
    "lib/a.py",
)
FREE = ("notes.txt", "src/data.txt", "build/out.o", "build/deep/x.txt", "docs/a.md")
SECRET = (".env", "keys/server.pem")
FOLDERS = (
    ".",
    "src",
    "src/deep",
    "src/deep/er",
    "build",
    "build/deep",
    "docs",
    "tests",
    "lib",
    ".git",
    "new",
    "new/er",
)
NEW = ("x.py", "new/x.py", "build/gen.py", "evil.agent", "src/new.txt", "docs/project.json", "src/in.py", "b.pth")

OPERATIONS = (
    "echo evil > {file}",
    "echo evil >> {file}",
    "rm -f {file}",
    "rm -rf {folder}",
    "mv {file} {other}",
    "mv {folder} {elsewhere}",
    "mv -f {file} {folder}/",
    "cp {other} {file}",
    "cp -r {folder} {elsewhere}",
    "cp -rT {folder} {elsewhere}",
    "ln {file} {other}",
    "ln -f {other} {file}",
    "ln -s {folder} {elsewhere}",
    "ln -sfn {folder} {elsewhere}",
    "ln -sf {other} {file}",
    "mkdir -p {elsewhere}",
    "rmdir {folder}",
    "truncate -s 0 {file}",
    "touch {file}",
    "sed -i s/e/evil/ {file}",
    "tee {file} < {other}",
    "dd if={other} of={file} conv=notrunc",
    "install -D {other} {file}",
    "tar cf build/a.tar {folder} && tar xf build/a.tar -C {elsewhere} --recursive-unlink",
    "find {folder} -type f -delete",
    "find {folder} -depth -exec mv {{}} {elsewhere} ;",
    "chmod -R 777 {folder}",
    "git config core.pager evil",
    "git mv {file} {other}",
    "cd {folder} && echo evil > ./app.py; cd - > /dev/null",
    "umount {file}",
    "exec 3<> {file} && echo evil >&3",
    "echo evil > /proc/self/cwd/{file}",
    "env -C {folder} cp -f ../{other} helper.py",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (*CODE, *FREE, *SECRET, ".git/config", ".git/HEAD", ".git/hooks/post-commit", ".llm-do/state.db"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"the {name}\n")
    return root


def script(chance: random.Random) -> str:
    """Return some operations in a row, on all kinds of files and folders."""
    files, places = (*CODE, *FREE, *SECRET, *NEW, ".git/config", ".git/hooks/post-commit", ".llm-do/state.db"), FOLDERS
    made = [
        chance.choice(OPERATIONS).format(
            file=chance.choice(files),
            other=chance.choice(files),
            folder=chance.choice(places),
            elsewhere=chance.choice(places),
        )
        for _ in range(chance.randint(1, 6))
    ]
    return "; ".join(made)


def contents(root: Path) -> Mapping[str, str]:
    kept = (*CODE, *SECRET, ".git/config", ".git/HEAD", ".git/hooks/post-commit", ".llm-do/state.db")
    return {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in kept if (root / name).is_file()}


def tried(root: Path, seed: int, times: int) -> None:
    chance = random.Random(seed)
    shell = configured(root, allow=["sh *"])
    code = CodeFiles(root)
    before, known = contents(root), CodeTree(code, lambda _: False).scan().code
    for number in range(times):
        made = script(chance)
        result = run(shell, "sh -c '" + made.replace(" ;", " \\;") + "'", timeout=20)
        assert contents(root) == before, (seed, number, made, result)
        listed = unreviewed_files(root)
        new = [path for path in CodeTree(code, lambda _: False).scan().code if path not in known]
        assert [path for path in new if not is_below(path, listed)] == [], (seed, number, made, result)
        for name in FREE:  # so that the next ones have something to work with
            if not os.path.lexists(root / name) and (root / name).parent.is_dir():
                (root / name).write_text("again\n")


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(2)))
def test_no_command_changes_what_the_next_link_would_load(backend: str, root: Path, seed: int) -> None:
    tried(root, seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_no_command_of_many_changes_what_the_next_link_would_load(backend: str, root: Path, seed: int) -> None:
    tried(root, seed, 40)
