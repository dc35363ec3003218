"""Links swapped in while files are used: nothing outside the root may be read or written."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.tree import Tree

SECRET = b"the outside secret"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for side, content in (("inside/swapped", b"inside"), ("outside", SECRET)):
        (tmp_path / side).mkdir(parents=True)
        (tmp_path / side / "file.txt").write_bytes(content)
        (tmp_path / side / "inner").mkdir()
        (tmp_path / side / "inner" / "deep.txt").write_bytes(content)
    (tmp_path / "outside" / "only_outside").write_bytes(SECRET)
    (tmp_path / "inside" / "leaf.txt").write_bytes(b"inside")
    return Root(tmp_path / "inside")


@contextlib.contextmanager
def swapping(root: Root) -> Iterator[None]:
    """Keep replacing a folder and a file below the root with links that leave it, and back."""
    inside, outside = root.path, root.path.parent / "outside"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for path, target in ((inside / "swapped", outside), (inside / "leaf.txt", outside / "file.txt")):
                path.rename(inside / "away")
                put(path, lambda path=path, target=target: path.symlink_to(target))
                put(path, lambda path=path: (inside / "away").rename(path))

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def put(path: Path, act: Callable[[], object]) -> None:
    """Run `act`, which creates `path`, and remove whatever a concurrent write puts there first."""
    while True:
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            act()
            return


def search(root: Root) -> bytes:
    out = b""
    with closing(iter(Tree(root))) as files:
        for found in files:
            assert "only_outside" not in found.path
            if found.kind == "file":
                with contextlib.suppress(OSError, FileRefusedError), found.open() as stream:
                    out += stream.read()
    return out


NUMBERS = itertools.count()


def move(root: Root) -> bytes:
    own, there, back = (f"{place}{next(NUMBERS)}.txt" for place in ("own", "swapped/", "back"))
    root.write(own, b"inside")
    root.move(own, there)
    root.move(there, back)
    return root.read(back, limit=100)


def delete(root: Root) -> bytes:
    root.write("swapped/file.txt", b"inside")
    root.delete("swapped/file.txt")
    return b""


ACTIONS: dict[str, Callable[[Root], bytes]] = {
    "read": lambda root: root.read("swapped/inner/deep.txt", limit=100),
    "read the leaf": lambda root: root.read("leaf.txt", limit=100),
    "write": lambda root: b"%d" % root.write("swapped/file.txt", b"new"),
    "write a new file": lambda root: b"%d" % root.write("swapped/inner/more/new.txt", b"new"),
    "write the leaf": lambda root: b"%d" % root.write("leaf.txt", b"new"),
    "list": lambda root: repr(root.list("swapped")).encode(),
    "search": search,
    "move": move,
    "make": lambda root: b"%d" % root.make_directory(f"swapped/{next(NUMBERS)}/made"),
    "delete": delete,
}


@pytest.mark.parametrize("seconds", [0.05, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_link_swapped_in_during_use_never_leads_outside(root: Root, action: str, seconds: float) -> None:
    outside = root.path.parent / "outside"
    outcomes: Counter[str] = Counter()
    with swapping(root):
        until = time.monotonic() + seconds
        while time.monotonic() < until or (not outcomes["done"] and time.monotonic() < until + 5):
            try:
                result = ACTIONS[action](root)
            except FileRefusedError as error:
                outcomes[error.reason] += 1
            else:
                outcomes["done"] += 1
                assert SECRET not in result
                assert b"only_outside" not in result
    assert outcomes["done"]
    left = {str(path.relative_to(outside)): path.is_file() and path.read_bytes() for path in outside.rglob("*")}
    assert left == {"file.txt": SECRET, "inner": False, "inner/deep.txt": SECRET, "only_outside": SECRET}
