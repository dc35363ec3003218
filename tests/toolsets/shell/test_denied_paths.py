"""What rules deny an agent is held against the programs that it starts too, whatever their words say."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from llm_do import Runtime
from tests.support.history import results_of
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.toolsets.shell.support import configured

FILES = {"secret/plan.txt": "the plan\n", "kept/deep/a.txt": "a\n", "other/kept/b.txt": "b\n", "data.txt": "data\n"}
HIDDEN = {
    "files.read(secret/**)": ("cat s*t/plan.txt", "cp -r . x; cat x/*/plan.txt", "mv s*t s; cat s/*"),
    "files.read(**/plan.txt)": ("cat s*t/plan.*", "tar c .", "mv secret s; cat s/*"),
    "files.read(link/**)": ("cat s*t/plan.txt",),
    "main:files.read": ("cat */plan.t*",),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "link").symlink_to("secret")
    return root


def contents(root: Path) -> Mapping[str, str]:
    return {name: (root / name).read_text() for name in FILES if (root / name).is_file()}


def under(deny: Sequence[str], root: Path, scripts: Sequence[str], shell: str = "sh") -> list[str]:
    """Run scripts as commands without a question under rules that deny, and return their results."""
    calls = [call("shell", command=f"{shell} -c '{text}'") for text in scripts]
    spec = agent("main", script(*calls, "done"), toolsets=[configured(root, allow=[f"{shell} *"])])
    result = carry_out(
        Runtime(project_of([spec, agent("other", "test")], root=root), approvals="approve_all", deny=deny)
    )
    return [str(content) for _, _, content in results_of(result.messages)]


@pytest.mark.sample(2)
@pytest.mark.parametrize("rule", HIDDEN)
def test_a_path_that_mustnt_be_read_is_hidden(backend: str, root: Path, rule: str) -> None:
    assert "the plan" in under([], root, HIDDEN[rule][:1])[0]
    for command, result in zip(HIDDEN[rule], under([rule], root, HIDDEN[rule]), strict=True):
        assert "the plan" not in result, command


@pytest.mark.sample(2)
@pytest.mark.parametrize("rule", ["files.write(kept/**)", "files.write(**/a.txt)", "main:files.write(**/deep)"])
def test_a_path_that_mustnt_be_written_stays(backend: str, root: Path, rule: str) -> None:
    scripts = ["cd k*t/deep && echo b > a.txt", "rm -r k*t/deep", "mv k*t x", "rm -r k*t", "mv -T o*/kept k*t/deep"]
    under([rule], root, scripts)
    assert contents(root)["kept/deep/a.txt"] == "a\n"


def test_nothing_new_appears_in_a_folder_that_mustnt_be_written_and_what_is_there_can_be_read(
    backend: str, root: Path
) -> None:
    under(["files.write(kept/**)"], root, ["(cd k*t && echo b > new.txt); cat k*/deep/a.txt > data.txt"])
    assert ((root / "kept/new.txt").exists(), contents(root)["data.txt"]) == (False, "a\n")


def test_nothing_can_be_written_if_a_rule_denies_all_of_it(backend: str, root: Path) -> None:
    under(["files.write"], root, ["echo b > d*a.txt; touch n; rm -r ot*", "touch $TMPDIR/x"])
    assert (contents(root), (root / "n").exists()) == (FILES, False)


def test_a_rule_for_another_agent_hides_nothing(backend: str, root: Path) -> None:
    assert "data" in under(["other:files.read(**)"], root, ["cat da*a.txt"])[0]


@pytest.mark.sample(1)
def test_a_rule_against_every_host_takes_the_network(backend: str, root: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        connect = f"exec 3<>/dev/tcp/localhost/{server.getsockname()[1]} && echo through"
        for rules, through in (([], True), (["net(example.org)"], True), (["net"], False), (["net(*)"], False)):
            assert ("through" in under(rules, root, [connect], "bash")[0]) is through, rules
