"""A root that doesn't exist yet: writing creates it, below its base and never through a link that leaves it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.files.tree import Tree


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "project"


@pytest.fixture(params=[None, False], ids=["by descriptor", "by path"])
def root(base: Path, request: pytest.FixtureRequest) -> Root:
    return Root(base / "notes" / "new", base=base, by_descriptor=request.param)


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def refusal(root: Root, path: str = "a.md") -> FileRefusedError:
    with pytest.raises(FileRefusedError) as caught:
        root.write(path, b"x")
    return caught.value


def test_a_root_is_not_created_through_a_link_to_an_outside_folder(root: Root, base: Path) -> None:
    (base / "notes").symlink_to("../elsewhere")
    assert refusal(root).reason == "outside"
    assert below(base.parent / "elsewhere") == []


def test_writing_creates_the_root(root: Root, base: Path) -> None:
    assert root.is_pending
    assert root.trail("a/./b.md") == ("a/b.md",)
    assert below(base) == []

    assert root.write("a/b.md", b"hello")
    assert not root.is_pending
    assert root.read("a/b.md", limit=10) == b"hello"
    assert below(base) == ["notes", "notes/new", "notes/new/a", "notes/new/a/b.md"]


@pytest.mark.parametrize("path", [".", "a", "a/b"])
def test_making_a_folder_creates_the_root(root: Root, base: Path, path: str) -> None:
    assert root.make_directory(path)
    assert not root.make_directory(path)
    assert (root.path / path).is_dir()


def test_reading_creates_nothing_and_names_the_missing_root(root: Root, base: Path) -> None:
    for read in (
        lambda: root.read("a.md", limit=1),
        lambda: root.stat("."),
        lambda: root.list(),
        lambda: list(Tree(root)),
        lambda: root.delete("a.md"),
        lambda: root.move("a.md", "b.md"),
    ):
        with pytest.raises(FileRefusedError, match="the root folder doesn't exist yet") as caught:
            read()
        assert caught.value.reason == "missing"
    assert below(base) == []


def test_writing_to_the_root_itself_is_refused_and_creates_nothing(root: Root, base: Path) -> None:
    for path in (".", "./", str(root.path)):
        assert refusal(root, path).reason == "not_a_file"
    assert below(base) == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [("../x", "outside"), ("a/../../x", "outside"), ("/etc/x", "outside"), ("~/x", "outside"), ("a/../x", "missing")],
)
def test_no_path_leaves_a_missing_root(root: Root, base: Path, path: str, reason: str) -> None:
    assert refusal(root, path).reason == reason
    assert below(base) == []


def test_a_guard_is_called_before_anything_is_created(root: Root, base: Path) -> None:
    def guard(trail: tuple[str, ...]) -> None:
        raise FileRefusedError(trail[0], "no", reason="protected")

    with pytest.raises(FileRefusedError, match="no"):
        root.write("a/b.md", b"x", guard=guard)
    assert below(base) == []


def test_a_link_inside_the_base_is_followed(root: Root, base: Path) -> None:
    (base / "real").mkdir()
    (base / "notes").symlink_to("real")
    root.write("a.md", b"x")
    assert (base / "real" / "new" / "a.md").read_bytes() == b"x"


@pytest.mark.parametrize("target", ["missing outside", "missing below outside", "loop"])
@pytest.mark.parametrize("link", ["notes", "notes/new"])
def test_nothing_is_created_through_a_link_that_leaves_the_base(root: Root, base: Path, target: str, link: str) -> None:
    (base / link).parent.mkdir(exist_ok=True)
    ways = {
        "missing outside": "../" * link.count("/") + "../gone",
        "missing below outside": str(base.parent / "elsewhere" / "gone"),
        "loop": Path(link).name,
    }
    (base / link).symlink_to(ways[target])
    before = below(base.parent)

    assert str(root.path) in str(refusal(root))
    assert below(base.parent) == before


def test_a_link_swapped_in_during_creation_is_not_followed(
    root: Root, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = os.mkdir

    def swapped(path: str, *args: object, **named: object) -> None:
        """Create a link that leaves the base instead, as another process might at this moment."""
        if path == "notes" or str(path).endswith("/notes"):
            (base / "notes").symlink_to("../elsewhere")
            raise FileExistsError(17, "there is something")
        made(path, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", swapped)
    refusal(root)
    assert below(base.parent / "elsewhere") == []


def test_two_writers_can_create_the_root_concurrently(root: Root, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = os.mkdir

    def late(path: str, *args: object, **named: object) -> None:
        for folder in (base / "notes", base / "notes" / "new"):
            if not folder.exists():
                made(str(folder))
        made(path, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", late)
    assert root.write("a.md", b"x")
    assert (root.path / "a.md").read_bytes() == b"x"


@pytest.mark.parametrize("where", ["../gone", "../project2/gone", "absolute"])
def test_a_root_outside_its_base_is_not_created(base: Path, where: str) -> None:
    path = base.parent / "gone" if where == "absolute" else base / where
    root = Root(path, base=base)
    assert not root.is_pending
    assert "there is no such file or folder" in refusal(root).message
    assert below(base.parent) == ["elsewhere", "project"]


def test_a_file_in_place_of_the_root_is_kept(root: Root, base: Path) -> None:
    (base / "notes").write_text("mine")
    assert refusal(root).reason == "not_a_folder"
    assert (base / "notes").read_text() == "mine"


def test_a_missing_base_is_not_created(root: Root, base: Path) -> None:
    base.rmdir()
    assert refusal(root).reason == "missing"
    assert not base.exists()
