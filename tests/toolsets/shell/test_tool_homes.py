"""A command in the sandbox has a home folder of its own, and still finds the toolchains and packages of its user."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.toolsets.shell.sandbox import status
from llm_do.toolsets.shell.sandbox.tool_homes import tool_homes
from tests.toolsets.shell.support import configured, run

VARIABLES = ("RUSTUP_HOME", "CARGO_HOME", "PYTHONUSERBASE", "GOPATH", "GOPROXY", "NVM_DIR")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in (".rustup", ".cargo", ".local", "go/pkg/mod/cache/download"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_folders_that_exist_are_named(home: Path) -> None:
    assert tool_homes(network=True) == {
        "RUSTUP_HOME": f"{home}/.rustup",
        "PYTHONUSERBASE": f"{home}/.local",
        "GOPROXY": f"file://{home}/go/pkg/mod/cache/download,https://proxy.golang.org,direct",
    }


def test_without_network_packages_come_from_the_home_folder(home: Path) -> None:
    assert tool_homes(network=False)["CARGO_HOME"] == f"{home}/.cargo"


def test_variables_of_the_user_come_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "rust").mkdir()
    (home / "gopath/pkg/mod/cache/download").mkdir(parents=True)
    monkeypatch.setenv("RUSTUP_HOME", f"{home}/rust")
    monkeypatch.setenv("GOPATH", f"{home}/gopath")
    monkeypatch.setenv("GOPROXY", "off")
    found = tool_homes(network=True)

    assert found["RUSTUP_HOME"] == f"{home}/rust"
    assert found["GOPROXY"] == f"file://{home}/gopath/pkg/mod/cache/download,off"


@pytest.mark.skipif(not status().active, reason="there is no sandbox on this machine")
def test_commands_get_them_beside_a_home_folder_of_their_own(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    said = run(configured(root, allow=["sh *"]), "sh -c 'echo $RUSTUP_HOME $HOME; touch $HOME/x && echo written'")

    rust, own, written = said["stdout"].split()
    assert (rust, written) == (f"{home}/.rustup", "written")
    assert own != str(home)
