"""Lines of several commands, redirections, directories and file patterns do without a shell what they do in one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import FunctionToolset

from llm_do import ApprovalDecision, Runtime
from llm_do.errors import ToolError
from llm_do.files.root import Root
from llm_do.toolsets.shell import shell_readonly
from llm_do.toolsets.shell.command_line import CommandRefusedError, prepare_line
from tests.support.runs import agent, carry_out, project_of
from tests.support.scripted import call, script
from tests.support.tables import each_row
from tests.toolsets.shell.support import configured, context, decision, run, traits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in (
        "a.txt",
        "b.txt",
        "sub/c.txt",
        "sub/d.md",
        "sub/deep/e.txt",
        ".hidden",
        "sub/.hidden.txt",
        "odd/[x].txt",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{path}\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret\n")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "near").symlink_to("sub")
    return root


@pytest.fixture
def shell(root: Path) -> FunctionToolset[Any]:
    return configured(root, "shell", type="shell", allow=["*"])


LINES = [
    "echo a && echo b",
    "echo a; echo b",
    "echo a || echo b",
    "false && echo b",
    "false || echo b",
    "false; echo b",
    "true || echo a && echo b",
    "false && echo a || echo b",
    "false || false; true",
    "true && false",
    "echo a | cat && echo b | cat",
    "false | true && echo b",
    "true | false || echo b",
    "missing-program || echo b",
    "missing-program; echo b",
    "echo a && missing-program",
    "cat nothing 2>/dev/null || echo gone",
    "cat nothing 2>&1 | grep -c No",
    "echo a >/dev/null && echo b",
    "cat a.txt nothing 2>&1 >/dev/null | wc -l",
    "echo a >&2 2>/dev/null; echo b",
    "echo a &>/dev/null; echo b",
    "cat </dev/null | wc -c",
    "cd sub && ls",
    "cd sub/deep; cat e.txt",
    "cd sub && cd deep && cat e.txt",
    "cd ./sub/../sub && cat c.txt && cat d.md",
    "cat *.txt",
    "echo *.txt sub/*.md nothing*",
    "echo su*/*.txt s*/*/e.t?t",
    "echo [ab].txt [!a].txt '*'.txt \"a\"*",
    "echo .h* sub/.h*",
    "echo [ns]*/ sub/*/ a.t*/ */c.txt */nothing",
    "cd sub && echo *",
    "echo odd/[[]x[]].txt odd/*x*",
    "echo near/*.txt",
    "echo * | wc -w",
]


@pytest.mark.sample(12)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")
@pytest.mark.parametrize("line", LINES)
def test_a_line_does_what_bash_does(shell: FunctionToolset[Any], root: Path, line: str) -> None:
    expected = subprocess.run(["bash", "-c", line], cwd=root, capture_output=True, text=True, check=False)
    found = run(shell, line)
    assert (found["exit_code"], found["stdout"]) == (expected.returncode, expected.stdout)
    if "missing" not in line:
        assert found["stderr"] == expected.stderr


def test_a_failure_that_an_alternative_answered_is_no_failure(shell: FunctionToolset[Any]) -> None:
    succeeded = traits(shell).succeeded
    assert succeeded is not None
    answered, ignored, last = run(shell, "false || true"), run(shell, "false; true"), run(shell, "true; false")
    assert ("exit_codes" in answered, succeeded(answered)) == (False, True)
    assert (ignored["exit_codes"], succeeded(ignored)) == ([1, 0], False)
    assert (last["exit_code"], succeeded(last)) == (1, False)


def test_one_time_limit_holds_for_the_whole_line(shell: FunctionToolset[Any]) -> None:
    with pytest.raises(ToolError, match=r"timed out after 0.5 s"):
        run(shell, "sleep 0.3; sleep 0.3 && sleep 60", timeout=0.5)


def test_a_single_program_that_is_missing_is_still_an_error(shell: FunctionToolset[Any]) -> None:
    with pytest.raises(ToolError, match="there is no program"):
        run(shell, "missing-program | cat")


@each_row(
    "line, why",
    [
        ("ls && cd sub", "only supported at the beginning"),
        ("cd sub | ls", "only supported at the beginning"),
        ("cd sub || ls", "only supported at the beginning"),
        ("cd sub", "only supported at the beginning"),
        ("cd && ls", "one directory"),
        ("cd - && ls", "one directory"),
        ("cd -P sub && ls", "one directory"),
        ("cd s* && ls", "one directory"),
        ("cd a b && ls", "one directory"),
        ("cd nothing && ls", "no such file"),
        ("cd a.txt && ls", "not a folder"),
        ("cd .. && ls", "outside"),
        ("cd link && ls", "outside"),
        ("cd /etc && ls", "outside"),
        ("ls ../*", "below the directory only"),
        ("ls /etc/*", "below the directory only"),
        ("ls sub/../*", "below the directory only"),
    ],
)
def test_a_directory_or_a_pattern_elsewhere_is_refused(root: Path, line: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        prepare_line(line, Root(root), ".")
    assert decision(shell_readonly(context(root)), line).effect == "deny"


def test_patterns_find_nothing_outside(root: Path) -> None:
    assert prepare_line("ls link/*", Root(root), ".").line == (("ls", "link/*"),)
    assert prepare_line(f"cd {root}/sub && ls *.md", Root(root), ".").line == (("ls", "d.md"),)


def test_a_pattern_with_too_many_matches_is_refused(root: Path) -> None:
    for number in range(1001):
        (root / "sub" / f"{number}.log").touch()
    with pytest.raises(CommandRefusedError, match="more than 1,000 files"):
        prepare_line("ls sub/*.log", Root(root), ".")


def test_words_that_a_pattern_stands_for_are_decided_about(root: Path) -> None:
    shell = configured(root, "shell", type="shell", allow=["sort *"])
    assert decision(shell, "sort *.txt").effect == "allow"
    (root / "--output=a.txt").touch()
    assert decision(shell, "sort *.txt").effect == "ask"
    assert decision(shell_readonly(context(root)), "sort *.txt").effect == "deny"


def test_a_directory_needs_a_rule_that_names_it(root: Path) -> None:
    shell = configured(root, "shell", type="shell", allow=["make *", "ls *"])
    assert decision(shell, "cd sub && make x").effect == "ask"
    assert decision(shell, "cd sub && ls -l").effect == "allow"
    resolve = traits(shell).resolve
    assert resolve is not None
    assert resolve({"command": "cd near && make x"}) == {"command": (("make", "x"),), "cwd": ("near", "sub")}


def test_the_question_shows_what_runs(root: Path) -> None:
    describe = traits(configured(root, "shell", type="shell")).describe
    assert describe is not None
    shown = describe({"command": "cd sub && cat *.txt 2>&1 | wc -l || echo 'a  b' >/dev/null; ls"})
    commands = "['cat', 'c.txt'] 2>&1 | ['wc', '-l'] || ['echo', 'a  b'] >/dev/null ; ['ls']"
    assert f"Run {commands} in {root}/sub" in shown


class Meanwhile:
    """A person who says yes, while something else happens."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self.happenings = list(happenings)
        self.shown: list[str] = []

    async def __call__(self, request: Any) -> ApprovalDecision:
        self.shown.append(request.description)
        if self.happenings:
            self.happenings.pop(0)()
        return ApprovalDecision("once")


def test_an_approval_holds_for_the_files_that_were_shown(root: Path) -> None:
    person = Meanwhile(lambda: (root / "z.txt").write_text("late\n"))
    shell = configured(root, "shell", type="shell")
    project = project_of(
        [agent("main", script(call("shell", command="cat *.txt"), "end"), toolsets=[shell])], root=root
    )
    carry_out(Runtime(project, approvals=person))
    assert ["z.txt" in text for text in person.shown] == [False, True]


def test_a_line_whose_patterns_match_other_files_than_were_decided_about_does_not_run(root: Path) -> None:
    shell = configured(root, "shell", type="shell", allow=["cat *"])
    resolve = traits(shell).resolve
    assert resolve is not None
    assert resolve({"command": "cat *.txt"}) == {"command": (("cat", "a.txt", "b.txt"),)}
    (root / "c.txt").touch()
    with pytest.raises(ToolError, match="match other files now"):
        run(shell, "cat *.txt")
    resolve({"command": "cat *.txt"})
    assert run(shell, "cat *.txt")["exit_code"] == 0


@pytest.mark.parametrize("line", ["grep -Rh secret .", "grep -R secret sub link", "diff -r sub link", "rg -L secret"])
def test_a_search_that_follows_links_out_of_the_project_needs_approval(root: Path, line: str) -> None:
    shell = configured(root, "shell", type="shell", allow=["grep *", "diff *", "rg *"])
    assert decision(shell, line).effect == "ask"
    resolve = traits(shell).resolve
    assert resolve is not None
    assert resolve({"command": line}) == {"command": None} or "link" in shlex.split(line)


def test_a_search_that_comes_to_no_such_link_does_not(root: Path) -> None:
    shell = configured(root, "shell", type="shell", allow=["grep *", "diff *", "rg *"])
    for line in (
        "grep -R c.txt sub",
        "diff -r sub odd",
        "rg -L x near",
        "grep -rh secret .",
        "diff -r --no-dereference . sub",
    ):
        assert decision(shell, line).effect == "allow", line
    (root / "sub" / "back").symlink_to("..")
    assert decision(shell, "grep -R x sub").effect == "ask"


def test_a_read_only_shell_runs_what_its_manifest_adds(root: Path) -> None:
    shell = configured(root, "shell", type="shell", read_only=True, allow=["make -n *", "touch *"])
    effects = {
        "ls": "allow",
        "make -n test": "allow",
        "ls && make -n test | head -n 3": "allow",
        "make test": "deny",
        "rm a.txt": "deny",
        "ls; rm a.txt": "deny",
        "touch new.txt": "allow",
        "touch ../x": "deny",
        "touch .git/config": "deny",
        "cat link/secret.txt": "ask",
        "cd sub && make -n x": "ask",
    }
    assert {line: decision(shell, line).effect for line in effects} == effects
