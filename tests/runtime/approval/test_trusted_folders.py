from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do.errors import StoreError, UsageError
from llm_do.files.state_folder import StateFile, state_folder
from llm_do.runtime.approval import saved_approvals, trusted_folders
from tests.support.tables import each_row

DAMAGED = {
    "nothing": ("", "trust.json:1: "),
    "no JSON": ("{", "trust.json:1: "),
    "a list": ("[]", "trust.json:1: it is not an object"),
    "no version": ("{}", 'trust.json:1: it is not {"version": 1, "trusted": [...]}'),
    "another version": ('{"version": "1", "trusted": []}', "trust.json:1: it is not"),
    "a newer version": ('{\n"version": 2}', "trust.json:2: version 2 was written by a newer llm-do"),
    "no list": ('{"version": 1, "trusted": {"/": 1}}', "trust.json:1: it is not"),
    "an entry": (
        '{"version": 1, "trusted": [\n"/"]}',
        "trust.json:2: an entry has a folder's real `path`",
    ),
    "a relative path": ('{"version": 1, "trusted": [\n\n{"path": ".", "device": 1}]}', "trust.json:3: an entry"),
    **{
        f"a path of another form: {path}": (
            f'{{"version": 1, "trusted": [{{"path": "{path}", "device": 1}}]}}',
            "trust.json:1: an entry",
        )
        for path in ("/a/", "/a/../b", "/a/./b", "/a//b", "//a", "/a\\u0000b")
    },
    "a device": ('{"version": 1, "trusted": [{"path": "/", "device": true}]}', "trust.json:1: an entry"),
    "an added": ('{"version": 1, "trusted": [{"path": "/", "device": 1, "added": 1}]}', "trust.json:1: an entry"),
}


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "llm-do" / "trust.json"


def write(file: Path, text: str | bytes, mode: int = 0o600) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(mode)


def test_a_trusted_folder_is_trusted_with_those_below_it(tmp_path: Path, file: Path) -> None:
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "project2").mkdir()
    trusted_folders.add(tmp_path / "project")

    assert trusted_folders.find(inner) is not None
    assert trusted_folders.find(tmp_path) is None
    assert trusted_folders.find(tmp_path / "project2") is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_folder_is_known_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    trusted_folders.add(tmp_path / "link")
    (tmp_path / "project" / "out").symlink_to(tmp_path)

    assert trusted_folders.find(tmp_path / "project") is not None
    assert trusted_folders.find(tmp_path / "project" / "out") is None
    assert [each.path for each in trusted_folders.load()] == [str(tmp_path / "project")]


def test_another_device_at_the_same_path_is_not_trusted(tmp_path: Path, file: Path) -> None:
    trusted_folders.add(tmp_path)
    data = json.loads(file.read_text())
    data["trusted"][0]["device"] += 1
    write(file, json.dumps(data))

    assert trusted_folders.find(tmp_path) is None


def test_a_revoked_folder_is_not_trusted_even_if_it_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    trusted_folders.add(folder)
    trusted_folders.add(folder)
    folder.rmdir()

    assert trusted_folders.find(folder) is None
    assert trusted_folders.remove(folder)
    assert not trusted_folders.remove(folder)
    assert trusted_folders.load() == ()


@each_row("name", DAMAGED)
def test_what_is_damaged_or_newer_trusts_nothing_and_has_a_place(name: str, file: Path, tmp_path: Path) -> None:
    text, message = DAMAGED[name]
    write(file, text)

    for use in (trusted_folders.find, trusted_folders.add, trusted_folders.remove):
        with pytest.raises(StoreError) as caught:
            use(tmp_path)
        assert message in caught.value.message, caught.value.message
    assert file.read_text() == text


def test_a_file_that_others_could_have_written_trusts_nothing(file: Path, tmp_path: Path) -> None:
    trusted_folders.add(tmp_path)
    for mode in (0o620, 0o602):
        file.chmod(mode)
        with pytest.raises(StoreError, match="others may write it"):
            trusted_folders.find(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError):
        trusted_folders.find(tmp_path)
    file.rmdir()
    write(file, b"\xff")
    with pytest.raises(StoreError, match="not text in UTF-8"):
        trusted_folders.find(tmp_path)


@pytest.mark.parametrize("folder", ["", "llm-do"], ids=["above", "own"])
def test_a_folder_that_others_may_write_to_trusts_nothing(file: Path, tmp_path: Path, folder: str) -> None:
    open_to_all = tmp_path / "state" / folder
    trusted_folders.add(tmp_path)
    open_to_all.chmod(0o777)

    for use in (trusted_folders.find, trusted_folders.add, trusted_folders.remove):
        with pytest.raises(StoreError, match=f"others may write to {open_to_all}"):
            use(tmp_path)
    open_to_all.chmod(0o700)
    assert trusted_folders.find(tmp_path) is not None


def test_answers_and_what_is_known_of_servers_are_not_read_where_others_may_write(tmp_path: Path, file: Path) -> None:
    saved_approvals.add_rule(tmp_path, "send")
    file.parent.chmod(0o770)

    found = saved_approvals.load_saved_approvals(tmp_path)

    assert (found.rules, [fault.message for fault in found.faults]) == ((), [f"others may write to {file.parent}"])
    file.parent.chmod(0o700)
    assert [rule.text for rule in saved_approvals.load_saved_approvals(tmp_path).rules] == ["send"]


def test_the_folders_that_are_made_are_closed_to_others_whatever_the_mask(tmp_path: Path, file: Path) -> None:
    before = os.umask(0o000)
    try:
        saved_approvals.add_rule(tmp_path, "send")
    finally:
        os.umask(before)

    assert [stat.S_IMODE(each.stat().st_mode) for each in (file.parent, file.parent / "answers")] == [0o700] * 2


def test_a_pipe_is_not_waited_for(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True, mode=0o700)
    os.mkfifo(file, 0o600)

    for use in (trusted_folders.find, trusted_folders.add, trusted_folders.remove):
        with pytest.raises(StoreError, match="not an ordinary file"):
            use(tmp_path)


@pytest.mark.parametrize("home", ["", ".", "x/y"])
def test_a_home_that_is_not_absolute_leads_into_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home)
    planted = tmp_path / home / ".local" / "state" / "llm-do" / "trust.json"
    write(planted, json.dumps({"version": 1, "trusted": [{"path": str(tmp_path), "device": tmp_path.stat().st_dev}]}))

    assert state_folder().is_absolute()
    assert not state_folder().is_relative_to(tmp_path)


def test_only_a_folder_can_be_trusted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UsageError, match="Not a directory"):
            trusted_folders.add(path)


def test_a_home_folder_and_the_root_are_too_wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "ann"))
    (tmp_path / "home" / "ann" / "project").mkdir(parents=True)
    for folder in (Path("/"), tmp_path / "home", tmp_path / "home" / "ann"):
        with pytest.raises(UsageError, match="home folder"):
            trusted_folders.add(folder)
    trusted_folders.add(tmp_path / "home" / "ann" / "project")


def test_a_folder_that_does_not_exist_cannot_be_trusted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be trusted"):
        trusted_folders.add(tmp_path / "missing")


def test_odd_names_are_kept_and_those_that_are_not_text_are_refused(tmp_path: Path) -> None:
    for name in (b'b"\n\xc3\xa9', b"b\xff"):
        (tmp_path / os.fsdecode(name)).mkdir()
    trusted_folders.add(tmp_path / 'b"\né')

    assert trusted_folders.find(tmp_path / 'b"\né') is not None
    with pytest.raises(UsageError, match="not text in UTF-8"):
        trusted_folders.add(tmp_path / os.fsdecode(b"b\xff"))


def test_processes_that_trust_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from llm_do.runtime.approval import trusted_folders as t\n"
        "for name in sys.argv[1:]: Path(name).mkdir(); t.add(Path(name))"
    )
    names = [[str(tmp_path / f"{process}-{number}") for number in range(10)] for process in range(3)]
    running = [subprocess.Popen([sys.executable, "-c", code, *each]) for each in names]

    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(trusted_folders.load()) == 30


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "a.json")
    with file.locked():
        file.write("old")
        with pytest.raises(UnicodeEncodeError):
            file.write("\ud800")

    assert file.read() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.json.lock"]


def test_the_state_folder_is_where_the_environment_says_unless_that_is_relative() -> None:
    home = Path.home() / ".local" / "state" / "llm-do"

    assert state_folder({"XDG_STATE_HOME": "/x"}) == Path("/x/llm-do")
    assert [state_folder(env) for env in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "x"})] == [home] * 3
