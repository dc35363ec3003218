from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from llm_do.files.folders import Kind
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from tests.support.tables import each_row

SECRET = b"the outside secret"

Operation = Callable[[Root, str], object]

OPERATIONS: dict[str, Operation] = {
    "read": lambda root, path: root.read(path, limit=100),
    "write": lambda root, path: root.write(path, b"written"),
    "stat": lambda root, path: root.stat(path),
    "list": lambda root, path: root.list(path),
    "make": lambda root, path: root.make_directory(path),
    "move from": lambda root, path: root.move(path, "moved"),
    "move to": lambda root, path: root.move("a/file.txt", path),
    "delete": lambda root, path: root.delete(path),
    "trail": lambda root, path: root.trail(path),
}
FOLLOWING = ("read", "write", "stat", "list", "make", "trail")


@pytest.fixture(params=["by descriptor", "by path"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "file.txt").write_bytes(b"inside")
    (outside / "folder").mkdir(parents=True)
    (outside / "secret.txt").write_bytes(SECRET)
    (inside / "to_secret").symlink_to(outside / "secret.txt")
    (inside / "to_outside").symlink_to(outside)
    (inside / "relative_out").symlink_to("../outside")
    (inside / "a" / "hop").symlink_to("../to_outside")
    (inside / "dangling_out").symlink_to(outside / "new.txt")
    (inside / "loop").symlink_to("loop")
    (inside / "to_proc").symlink_to("/proc/self/root")
    (inside / "to_file").symlink_to("a/file.txt")
    (inside / "to_a").symlink_to("a")
    (inside / "up_and_back").symlink_to("../inside/a")
    (inside / "absolute_in").symlink_to(inside / "a")
    (inside / "dangling_in").symlink_to("a/new.txt")
    return Root(inside, by_descriptor=request.param == "by descriptor")


@pytest.fixture
def outside(root: Root) -> Path:
    return root.path.parent / "outside"


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refusal(operation: Operation, root: Root, path: str) -> str:
    with pytest.raises(FileRefusedError) as caught:
        operation(root, path)
    assert "\n" not in caught.value.message
    return caught.value.reason


@each_row(
    "path",
    [
        "..",
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "a/b/../../../outside/folder",
        "./a/./../../outside",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "~",
        "~/x",
        "~root/x",
        "to_outside/secret.txt",
        "to_outside/new.txt",
        "to_outside/folder/new.txt",
        "relative_out/secret.txt",
        "a/hop/secret.txt",
        "to_a/hop/secret.txt",
        "to_outside/../inside/a",
        "to_proc/etc/passwd",
        "to_a/../..",
    ],
)
def test_every_operation_refuses_a_path_that_leaves(root: Root, outside: Path, path: str) -> None:
    before = contents(outside)
    reasons = {name: refusal(operation, root, path) for name, operation in OPERATIONS.items()}
    assert reasons == dict.fromkeys(OPERATIONS, "outside")
    assert contents(outside) == before


@each_row("path", ["to_secret", "to_outside", "dangling_out", "relative_out", "a/hop", "to_proc"])
def test_a_link_that_leaves_is_refused_as_last_part_too(root: Root, outside: Path, path: str) -> None:
    before = contents(outside)
    reasons = {name: refusal(OPERATIONS[name], root, path) for name in FOLLOWING}
    assert reasons == dict.fromkeys(FOLLOWING, "outside")
    assert contents(outside) == before


@pytest.mark.parametrize(
    "path", ["", "a\0b", "x" * 5000, "a/" * 300, "y" * 300, "half \ud800 pair"], ids=lambda path: repr(path[:8])
)
def test_an_impossible_path_is_refused(root: Root, path: str) -> None:
    for name, operation in OPERATIONS.items():
        if name == "trail" and path.startswith("y"):
            continue  # Whether a name is too long is only known to the disk.
        assert refusal(operation, root, path) in ("invalid", "missing"), name


def test_a_sibling_whose_name_begins_like_the_root_is_outside(root: Root) -> None:
    sibling = root.path.parent / "inside2"
    sibling.mkdir()
    (sibling / "x").write_bytes(SECRET)
    assert refusal(OPERATIONS["read"], root, str(sibling / "x")) == "outside"
    assert refusal(OPERATIONS["read"], root, "../inside2/x") == "outside"


def test_a_link_loop_is_refused(root: Root) -> None:
    assert refusal(OPERATIONS["read"], root, "loop") == "invalid"
    assert refusal(OPERATIONS["write"], root, "loop/x") == "invalid"


@each_row(
    "path",
    [
        "a/file.txt",
        "./a//b/../file.txt",
        "to_file",
        "to_a/file.txt",
        "absolute_in/file.txt",
        "to_a/../to_file",
        "{root}/a/file.txt",
        "{root}/../inside/a/file.txt",
    ],
)
def test_a_path_that_stays_inside_is_read(root: Root, path: str) -> None:
    if ".." in path and path.startswith("{"):
        # The root's parent is outside, whatever comes after it.
        assert refusal(OPERATIONS["read"], root, path.format(root=root.path)) == "outside"
    else:
        assert root.read(path.format(root=root.path), limit=100) == b"inside"


def test_a_link_that_leaves_and_returns_is_refused(root: Root) -> None:
    assert refusal(OPERATIONS["read"], root, "up_and_back/file.txt") == "outside"


def test_a_root_behind_a_link_accepts_both_names(root: Root, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root.path)
    alias = Root(tmp_path / "alias")
    assert alias.read(str(tmp_path / "alias" / "a" / "file.txt"), limit=9) == b"inside"
    assert alias.read(str(root.path.resolve() / "a" / "file.txt"), limit=9) == b"inside"


def test_a_name_starting_with_a_tilde_can_be_written_with_a_dot(root: Root) -> None:
    assert root.write("./~x", b"1")
    assert root.read("./~x", limit=9) == b"1"


def test_pipes_and_sockets_are_refused_without_blocking(root: Root) -> None:
    os.mkfifo(root.path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root.path)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket"):
            for operation in ("read", "write", "move from", "delete"):
                assert refusal(OPERATIONS[operation], root, name) == "not_a_file"
            assert refusal(OPERATIONS["list"], root, name) == "not_a_folder"
            assert (root.path / name).exists()
        assert refusal(OPERATIONS["read"], root, "pipe/x") in ("missing", "not_a_folder")


def test_a_device_is_refused() -> None:
    devices = Root("/dev")
    for operation in ("read", "write", "move from", "delete"):
        assert refusal(OPERATIONS[operation], devices, "null") == "not_a_file"


@each_row(
    "operation, path, reason",
    [
        ("read", "nothing", "missing"),
        ("read", "nothing/x", "missing"),
        ("read", "nothing/../a/file.txt", "missing"),
        ("read", "a", "not_a_file"),
        ("read", ".", "not_a_file"),
        ("read", "a/file.txt/x", "not_a_folder"),
        ("list", "a/file.txt", "not_a_folder"),
        ("write", "a", "not_a_file"),
        ("write", ".", "not_a_file"),
        ("write", "a/..", "not_a_file"),
        ("write", "nothing/../x", "missing"),
        ("make", "a/file.txt", "exists"),
        ("move from", "nothing", "missing"),
        ("move from", "a", "not_a_file"),
        ("move to", "to_file", "exists"),
        ("move to", "a", "exists"),
        ("move to", ".", "exists"),
        ("delete", "a", "not_a_file"),
        ("delete", ".", "not_a_file"),
        ("delete", "nothing", "missing"),
    ],
)
def test_a_file_error_names_its_reason(root: Root, operation: str, path: str, reason: str) -> None:
    before = contents(root.path)
    assert refusal(OPERATIONS[operation], root, path) == reason
    assert contents(root.path) == before


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileRefusedError, match=r"the root folder .*gone: there is no such"):
        Root(tmp_path / "gone").read("x", limit=1)


def test_a_permission_error_is_reported(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def closed(path: str | Path, *args: int, **kwargs: int) -> int:
        if Path(path).name == "file.txt":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", closed)
    assert refusal(OPERATIONS["read"], root, "a/file.txt") == "permission"


def test_reading_stops_at_the_limit(root: Root) -> None:
    assert root.read("a/file.txt", limit=3) == b"ins"


def test_a_write_creates_missing_folders(root: Root) -> None:
    assert root.write("x/y/z.txt", b"1") is True
    assert root.write("x/y/z.txt", b"2") is False
    assert (root.path / "x/y/z.txt").read_bytes() == b"2"


def test_a_write_keeps_the_mode(root: Root) -> None:
    path = root.path / "script"
    path.write_bytes(b"old")
    path.chmod(0o751)
    root.write("script", b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)


def test_a_new_file_follows_the_umask(root: Root) -> None:
    root.write("new", b"")
    (root.path / "other").write_bytes(b"")
    assert (root.path / "new").stat().st_mode == (root.path / "other").stat().st_mode


def test_a_file_marked_read_only_is_not_replaced(root: Root) -> None:
    (root.path / "a/file.txt").chmod(0o444)
    assert refusal(OPERATIONS["write"], root, "a/file.txt") == "permission"
    assert (root.path / "a/file.txt").read_bytes() == b"inside"


def test_a_write_never_goes_through_a_hard_link(root: Root, outside: Path) -> None:
    (root.path / "linked").hardlink_to(outside / "secret.txt")
    root.write("linked", b"new")
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert (root.path / "linked").read_bytes() == b"new"


def test_a_write_through_an_inner_link_changes_the_file_and_keeps_the_link(root: Root) -> None:
    root.write("to_file", b"new")
    root.write("dangling_in", b"made")
    assert (root.path / "to_file").is_symlink()
    assert (root.path / "a/file.txt").read_bytes() == b"new"
    assert (root.path / "a/new.txt").read_bytes() == b"made"


@pytest.mark.parametrize("broken", ["fsync", "rename"])
def test_a_failed_write_leaves_only_the_old_file(root: Root, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    before = contents(root.path)
    monkeypatch.setattr(os, broken, fail)
    if broken == "rename":
        monkeypatch.setattr(Path, "replace", fail)
    assert refusal(lambda root, path: root.write(path, b"x" * 100_000), root, "a/file.txt") == "failed"
    assert contents(root.path) == before


def test_moving_and_deleting_act_on_the_link_itself(root: Root, outside: Path) -> None:
    root.move("to_secret", "b/moved")
    assert (root.path / "b/moved").readlink() == outside / "secret.txt"
    root.delete("b/moved")
    root.delete("to_file")
    assert (outside / "secret.txt").read_bytes() == SECRET
    assert (root.path / "a/file.txt").read_bytes() == b"inside"


def test_moving_a_missing_file_names_it(root: Root) -> None:
    with pytest.raises(FileRefusedError, match=r"^missing: there is no such file") as caught:
        root.move("missing", "b/moved")
    assert caught.value.reason == "missing"


def test_a_guard_is_called_before_anything_is_created(root: Root) -> None:
    def no(trail: tuple[str, ...]) -> None:
        raise FileRefusedError(trail[-1], "no", reason="protected")

    before = contents(root.path)
    for act in (
        lambda: root.write("x/y", b"", guard=no),
        lambda: root.make_directory("x/y", guard=no),
        lambda: root.move("a/file.txt", "x/y", guard=no),
        lambda: root.delete("a/file.txt", guard=no),
        lambda: root.read("a/file.txt", limit=1, guard=no),
    ):
        with pytest.raises(FileRefusedError, match="no"):
            act()
    assert contents(root.path) == before


def test_a_trail_has_every_name_of_a_path(root: Root) -> None:
    (root.path / "chain").symlink_to("to_a/../to_file")
    assert root.trail("a/b/../file.txt") == ("a/file.txt",)
    assert root.trail("chain") == ("chain", "to_file", "a/file.txt")
    assert root.trail("to_a/new/x") == ("to_a/new/x", "a/new/x")
    assert root.trail("to_file", follow=False) == ("to_file",)
    assert root.trail("to_a/hop", follow=False) == ("to_a/hop", "a/hop")
    assert root.trail(".") == (".",)


def test_stat_reports_kind_path_and_size(root: Root) -> None:
    kinds: dict[str, Kind] = {".": "folder", "a": "folder", "a/file.txt": "file", "to_file": "file"}
    assert {path: root.stat(path).kind for path in kinds} == kinds
    assert root.stat("to_file").path == "a/file.txt"
    assert root.stat("to_file", follow=False).kind == "link"
    assert root.stat("a/file.txt").size == 6


def test_a_folder_listing_is_sorted_and_limited(root: Root) -> None:
    for n in range(20):
        root.write(f"many/{19 - n:02}", b"")
    assert [entry.name for entry in root.list("many", limit=3)] == ["00", "01", "02"]
    assert {entry.name: entry.kind for entry in root.list("a")} == {
        "b": "folder",
        "file.txt": "file",
        "hop": "link",
    }


NAMES = st.one_of(
    st.sampled_from(
        ["..", ".", "", "a", "b", "hop", "to_a", "to_outside", "to_file", "to_secret", "relative_out", "loop"]
    ),
    st.text(max_size=4),
    st.sampled_from(["~", "..\\..", "%2e%2e", "\u2025", "．．", "...", "secret.txt", "folder", "\ud800"]),
)
PATHS = st.builds(
    lambda head, names: head + "/".join(names),
    st.sampled_from(["", "/", "./", "//", "{root}/", "{outside}/", "{root}/../"]),
    st.lists(NAMES, min_size=1, max_size=7),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS, operation=st.sampled_from(sorted(OPERATIONS)))
@example(path="a/hop/secret.txt", operation="read")
def test_no_path_leaves_the_root(root: Root, outside: Path, path: str, operation: str) -> None:
    path = path.replace("{root}", str(root.path)).replace("{outside}", str(outside))
    before = contents(outside)
    result: object = None
    readable = True
    try:
        result = OPERATIONS[operation](root, path)
    except FileRefusedError as error:
        result = error.message
        readable = error.message.isprintable()
    assert readable
    assert SECRET not in repr(result).encode()
    assert contents(outside) == before
    assert sorted(entry.name for entry in root.path.parent.iterdir()) == ["inside", "outside"]
