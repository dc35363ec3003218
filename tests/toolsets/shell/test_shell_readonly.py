"""`shell_readonly` is read-only: commands that run without approval only read, and only below the project's folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai import FunctionToolset

from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.commands.launching_programs import INTERPRETERS, WRAPPERS
from llm_do.toolsets.shell import shell_readonly
from llm_do.toolsets.shell.command_line import CommandRefusedError, parse_command
from llm_do.toolsets.shell.readonly_programs import READING_PROGRAMS
from tests.toolsets.shell.support import OFF, context, decision, run

ORDINARY = [
    ("ls", r"notes\.txt"),
    ("ls -la src", r"main\.py"),
    ("ls -lhtR --color=never", r"main\.py"),
    ("cat notes.txt", r"plum"),
    ("cat -n src/main.py", r"1\s+import os"),
    ("cat -- -n", r"a name like"),
    ("cat ./-n", r"a name like"),
    ("head -n 1 notes.txt", r"^pear\n$"),
    ("head -1 notes.txt", r"^pear\n$"),
    ("head -n -1 notes.txt", r"^pear\napple\n$"),
    ("tail -n 1 notes.txt", r"^plum\n$"),
    ("tail -c 3 notes.txt", r"^um\n$"),
    ("wc -l notes.txt", r"^3 notes"),
    ("grep -n TODO src/main.py", r"^1:"),
    ("grep -rn --include='*.py' TODO .", r"main\.py:1:"),
    ("grep -e TODO -e hello -c src/main.py", r"^2$"),
    ("grep -E 'apple|plum' notes.txt", r"apple\nplum"),
    ("grep -A1 -i PEAR notes.txt", r"apple"),
    ("grep '../x' notes.txt", r"^$"),
    ("find . -name '*.py'", r"\./src/main\.py"),
    ("find src -type f -size -100k -newermt 2000-01-01 -print", r"main\.py"),
    ("find . -maxdepth 1 '(' -name '*.txt' -o -name '*.md' ')' -not -empty", r"\./notes\.txt"),
    ("sort notes.txt", r"^apple\npear\nplum\n$"),
    ("sort -k1,1 -t : -u -r notes.txt", r"^plum"),
    ("cat notes.txt | sort | uniq -c | sort -rn | head -n 1", r"1 "),
    ("uniq -c notes.txt", r"1 pear"),
    ("git status", r"modified: +notes\.txt"),
    ("git status --short --branch", r" M notes\.txt"),
    ("git log --oneline -n 5", r"First words"),
    ("git log -1 --format='%an: %s' -- src", r"^Ann: First words\n$"),
    ("git log --since 2000-01-01 --author=Ann --stat", r"main\.py"),
    ("git log -p -S hello", r"\+print"),
    ("git diff", r"\+plum"),
    ("git diff --stat HEAD -- notes.txt", r"1 file changed"),
    ("git diff --name-only", r"^notes\.txt\n$"),
    ("git show --stat HEAD", r"First words"),
    ("git show HEAD:notes.txt | tail -n 1", r"^pear\n$"),
    ("git --no-pager log -1", r"Ann"),
    ("git branch", r"main"),
    ("git branch -a --format='%(refname:short)'", r"main"),
    ("git branch --show-current", r"^main\n$"),
    ("git branch --contains HEAD", r"main"),
    ("git rev-parse --abbrev-ref HEAD", r"^main\n$"),
    ("git rev-parse --show-toplevel", r"project"),
    ("git blame src/main.py", r"Ann"),
    ("git blame -L 1,1 -- src/main.py", r"import os"),
    ("git ls-files '*.py'", r"src/main\.py"),
    ("git ls-files --others --exclude-standard", r"^$"),
    ("git grep -n TODO", r"src/main\.py:1"),
    ("git grep -n TODO HEAD -- src", r"HEAD:src/main\.py:1"),
    ("git describe --always", r"[0-9a-f]{7}"),
    ("git tag -l 'v*'", r"^$"),
    ("git stash list", r"^$"),
    ("git remote -v", r"^$"),
    ("git shortlog -sn HEAD", r"1\s+Ann"),
    ("git reflog -3", r"commit \(initial\)"),
    ("git ls-tree --name-only HEAD src/", r"src/main\.py"),
    ("git cat-file -p HEAD:notes.txt", r"apple"),
    ("git merge-base HEAD HEAD", r"[0-9a-f]{40}"),
    ("git worktree list", r"project"),
    ("git log -S'a/b'", r"^$"),
    ("pwd", r"project$"),
    ("stat -c %s notes.txt", r"^16\n$"),
    ("file src/main.py", r"ASCII|script|text"),
    ("du -sk src", r"src$"),
    ("cut -d' ' -f1 src/main.py", r"^import$"),
    ("cut -d/ -f2 notes.txt", r"pear"),
    ("tr a-z A-Z < /dev/null", r"^$"),
    ("cat notes.txt | tr -d 'a' | nl", r"1\s+per"),
    ("diff notes.txt notes.txt", r"^$"),
    ("sed -n '1,2p' notes.txt", r"^pear\napple\n$"),
    ("sed -n '/pear/,/plum/p' notes.txt", r"plum"),
    ("awk '{print NR \": \" $1}' notes.txt", r"^2: apple$"),
    ("awk -F/ '/a|b/ && NR > 1 {print $NF}' notes.txt", r"apple"),
    ("echo done", r"^done$"),
    ("basename src/main.py .py", r"^main$"),
    ("date +%Y", r"^\d{4}$"),
    ("md5sum notes.txt", r"notes\.txt"),
    ("test -f notes.txt && echo there || echo gone", r"^there\n$"),
    ("test -f nothing && echo there || echo gone", r"^gone\n$"),
    ("cd src && ls", r"^main\.py\n$"),
    ("cd src; ls ../notes.txt", r"notes\.txt"),
    ("ls *.txt src/*.py", r"^notes\.txt\nsrc/main\.py\n$"),
    ("wc -l *.txt", r"3 notes\.txt"),
    ("cat n*.txt 2>/dev/null | head -n 1", r"^pear\n$"),
    ("ls nothing 2>/dev/null || true", r"^$"),
    ("cat nothing 2>&1 | grep -c 'No such file'", r"^1\n$"),
    ("git status --short && git log --oneline -3", r" M notes\.txt\n[0-9a-f]+ First words"),
    ("grep -rn hello . ; echo end", r"main\.py:2:.*\nend\n$"),
]
if shutil.which("jq"):
    ORDINARY += [("echo '{\"a\": [1, 2]}' | jq -c '.a | map(. / 2)'", r"^\[0\.5,1\]$")]

WRITES_OR_RUNS = [
    "rm notes.txt",
    "touch marker",
    "mv notes.txt marker",
    "cp notes.txt marker",
    "tee marker",
    "dd of=marker",
    "sed -i s/a/b/ notes.txt",
    "sed -n 'w marker' notes.txt",
    "awk 'BEGIN{system(\"touch marker\")}'",
    "python3 -c \"open('marker', 'w')\"",
    "perl -e 'open F, \">marker\"'",
    "vim -c ':w marker' notes.txt",
    "make marker",
    # chains and everything that starts a second command
    "ls; touch marker",
    "ls && touch marker",
    "ls || touch marker",
    "ls & touch marker",
    "ls | tee marker",
    "ls | sh -c 'touch marker'",
    "ls\ntouch marker",
    "ls\r\ntouch marker",
    "ls \\\n; touch marker",
    "cat notes.txt | xargs touch marker",
    "ls | python3 -c \"open('marker', 'w')\"",
    # redirections and substitutions
    "ls > marker",
    "ls >> marker",
    "ls >| marker",
    "ls &> marker",
    "ls 2> marker",
    "cat <> marker",
    "cat << E > marker\nx\nE",
    "echo $(touch marker)",
    "ls `touch marker`",
    'ls "$(touch marker)"',
    "ls <(touch marker)",
    "ls >(touch marker)",
    "ls ${X:=$(touch marker)}",
    "ls $((a[$(touch marker)]))",
    # wrappers and other names for programs
    "env touch marker",
    "env -S 'touch marker'",
    "nice touch marker",
    "timeout 5 touch marker",
    "nohup touch marker",
    "xargs touch marker",
    "sh -c 'touch marker'",
    "bash -c 'touch marker'",
    "sudo touch marker",
    "command touch marker",
    "exec touch marker",
    "eval touch marker",
    "busybox touch marker",
    "time touch marker",
    "setsid touch marker",
    "./ls",
    "./git status",
    "src/ls",
    "/bin/sh -c 'touch marker'",
    "/usr/bin/env touch marker",
    "../bin/ls",
    "PATH=. ls",
    "LD_PRELOAD=./x.so ls",
    "GIT_EXTERNAL_DIFF=./evil git diff",
    "GIT_PAGER='touch marker' git log",
    "PAGER='touch marker' git log",
    # look-alikes
    "ｌｓ",
    "lѕ",
    "ls\u00a0marker",
    "ls\u200b",
    "\u202els",
    "LS",
    "Git status",
    # options that write or execute
    "find . -exec touch marker ';'",
    "find . -exec touch marker {} +",
    "find . -execdir touch marker ';'",
    "find . -ok touch marker ';'",
    "find . -okdir touch marker ';'",
    "find . -name notes.txt -delete",
    "find . -fprint marker",
    "find . -fprint0 marker",
    "find . -fprintf marker %p",
    "find . -fls marker",
    "find . -files0-from notes.txt",
    "sort -o marker notes.txt",
    "sort -omarker notes.txt",
    "sort notes.txt -uo marker",
    "sort --output=marker notes.txt",
    "sort --output marker notes.txt",
    "sort --outp=marker notes.txt",
    "sort --compress-program=./evil notes.txt",
    "sort --compress-prog ./evil notes.txt",
    "sort -T src notes.txt",
    "sort -S 99% notes.txt",
    "sort --files0-from=notes.txt",
    "sort -k -omarker notes.txt",
    "uniq notes.txt marker",
    "uniq -- notes.txt marker",
    "tail -f notes.txt",
    "tail --follow=name notes.txt",
    "tail -F notes.txt",
    "wc --files0-from=notes.txt",
    "grep -R TODO .",
    "grep --dereference-recursive TODO .",
    "ls -L leak",
    "cat --unknown notes.txt",
    # git
    "git",
    "git log --output=marker",
    "git log --output marker",
    "git log --outpu=marker",
    "git diff --output=marker",
    "git show --output=marker HEAD",
    "git -c core.pager='touch marker' log",
    "git -c alias.x='!touch marker' x",
    "git -c core.fsmonitor='touch marker' status",
    "git --exec-path=. status",
    "git --git-dir=/tmp/x log",
    "git --work-tree=/ status",
    "git -C / log",
    "git -p log",
    "git --paginate log",
    "git --config-env=core.pager=X log",
    "git log --ext-diff -p",
    "git diff --ext-diff",
    "git diff --textconv",
    "git diff --no-index notes.txt src/main.py",
    "git log --textconv -p",
    "git log --show-signature",
    "git log --remerge-diff",
    "git log -M --output=marker",
    "git log -n --output=marker",
    "git log --grep --output=marker",
    "git diff -U --output=marker",
    "git log -Onotes.txt",
    "git status --ignore-submodules=none",
    "git diff --submodule=diff",
    "git commit -m x",
    "git add .",
    "git checkout -- .",
    "git reset --hard",
    "git stash",
    "git clean -fdx",
    "git push",
    "git fetch",
    "git pull",
    "git config user.name x",
    "git grep -O'touch marker' hello",
    "tar -xf x.tar",
    "tar -cf marker src",
    "tar -tf evil:x.tar",
    "tar -tf x.tar -I 'touch marker'",
    "ps auxe",
    "python3 -c pass --version",
    "./node --version",
    "git branch new",
    "git branch -d main",
    "git branch -D main",
    "git branch -m other",
    "git branch -f new",
    "git branch -u main",
    "git branch --set-upstream-to=main",
    "git branch --edit-description",
    "git branch -a new",
    "git tag v1",
    "git tag -d v1",
    "git tag -a -m x",
    "git stash drop",
    "git stash pop",
    "git stash list pop",
    "git remote add x y",
    "git remote update",
    "git remote show origin",
    "git reflog expire --all",
    "git reflog delete HEAD@{0}",
    "git worktree add x",
    "git config --list",
    "git config core.pager x",
    "git rev-parse --parseopt",
    "git cat-file --textconv HEAD:notes.txt",
    "git cat-file --filters HEAD:notes.txt",
    "git blame --contents=notes.txt src/main.py",
    "git describe --work-tree=x",
    "git grep --no-index x /etc",
    "git for-each-ref --shell --output=x",
    "git -c alias.blame='!touch marker' blame notes.txt",
    "sed '1e touch marker' notes.txt",
    "sed '1etouch marker' notes.txt",
    "sed 's/.*/touch marker/e' notes.txt",
    "sed 's/a/b/w marker' notes.txt",
    "sed '1{p;w marker' notes.txt",
    "sed '/a/w marker' notes.txt",
    "sed 'R /etc/hostname' notes.txt",
    "sed -n 'p;r /etc/hostname' notes.txt",
    "sed -s -n '$w marker' notes.txt",
    "sed -f notes.txt notes.txt",
    "sed --in-place=x s/a/b/ notes.txt",
    "awk '{print > \"marker\"}' notes.txt",
    "awk '{print $1 >> \"marker\"}' notes.txt",
    'awk \'{printf "%s", $1 > "marker"}\' notes.txt',
    "awk '{print /;/ > \"marker\"}' notes.txt",
    "awk '{print | \"touch marker\"}' notes.txt",
    "awk '\"touch marker\" | getline' notes.txt",
    "awk 'BEGIN{while((getline line < \"/etc/passwd\")>0) print line}'",
    "awk 'BEGIN{ARGV[1]=\"/etc/passwd\"; ARGC=2} {print}' notes.txt",
    "awk -f notes.txt",
    "awk '@load \"filefuncs\"' notes.txt",
    'gawk \'BEGIN{x="system"; @x("touch marker")}\'',
    "jq 'import \"/etc/x\" as $x; $x' notes.txt",
    "jq -L /etc . notes.txt",
    "rg --pre ./evil x",
    "rg --hostname-bin ./evil x",
    "rg -z x",
    "rg -L x",
    "tree -o marker",
    "tree -R -L 1 -H . -o marker",
    "tree -l",
    "fd . -x touch marker",
    "fd . --exec-batch touch marker",
    "diff -r src src",
    "xxd -r notes.txt marker",
    "xxd notes.txt marker",
    "date -s 2020-01-01",
    "date 01010000",
    "hostname x",
    "file -C -m notes.txt",
    "file -f notes.txt",
    "du --files0-from=notes.txt",
    "uniq -c notes.txt marker",
    "cd src && touch ../marker",
    "cd src && ls && touch marker",
    "test -f notes.txt && touch marker",
    "test -f nothing || touch marker",
    "ls > /dev/null > marker",
    "ls 2>/dev/null; touch marker",
    "cat notes.txt >/dev/null 2>marker",
    "cd src && cd .. && cd - && ls",
    "ls && cd src",
    "git archive --remote=x HEAD",
    "git ls-remote --upload-pack='touch marker' .",
    "git upload-pack .",
    "git bisect run touch marker",
    "git submodule foreach touch marker",
    "git rebase -x 'touch marker' HEAD",
    "git help log",
    "git log --help",
    "git x",
]

READS_ELSEWHERE = [
    "cat /etc/hostname",
    "cat ../secret.txt",
    "cat src/../../secret.txt",
    "cat leak",
    "cat ./leak",
    "cat leakdir/secret.txt",
    "cat src/../leakdir/secret.txt",
    "cat /proc/self/root/etc/hostname",
    "cat /proc/self/environ",
    "cat /dev/stdin",
    "head -n 5 leak",
    "head -n5 ../secret.txt",
    "tail -- ../secret.txt",
    "wc -c leak",
    "ls ..",
    "ls /",
    "ls leakdir",
    "ls leakdir/",
    "ls -la -- ..",
    "grep secret ../secret.txt",
    "grep -f ../secret.txt notes.txt",
    "grep -f../secret.txt notes.txt",
    "grep --file=../secret.txt notes.txt",
    "grep --exclude-from=../secret.txt x notes.txt",
    "grep -r secret leakdir",
    "grep -e x -- ../secret.txt",
    "find .. -name secret.txt",
    "find leakdir/ -name secret.txt",
    "find src .. -name secret.txt",
    "find . -newer ../secret.txt",
    "find . -samefile ../secret.txt",
    "sort ../secret.txt",
    "uniq ../secret.txt",
    "cat notes.txt | cat - ../secret.txt",
    "git diff notes.txt ../secret.txt",
    "git diff -- ../secret.txt",
    "git log -- ../secret.txt",
    "git show HEAD:../secret.txt",
    "git log -L1,2:../secret.txt",
    "git log -U ../secret.txt",
    "cat .env",
    "grep KEY .env",
    "cat src/../.env",
    "cat notes.txt '\u202e.txt'",
    "cat le*",
    "head -n 1 l*k",
    "cat .e*",
    "ls leakdir/*",
    "cd src && cat ../../secret.txt",
    "cat notes.txt; cat ../secret.txt",
    "stat ../secret.txt",
    "diff notes.txt ../secret.txt",
    "jq -R . ../secret.txt",
    "jq -n --rawfile x ../secret.txt '$x'",
    "sed -n p ../secret.txt",
    "awk '{print}' leak",
    "test -f /etc/passwd",
    "nl leak",
    "git blame ../secret.txt",
    "git ls-files ../",
    "rg secret leakdir",
    "rg -f ../secret.txt x",
]


def output_of(result: dict[str, Any] | None) -> str:
    return json.dumps(result)


def run_without_approval(toolset: FunctionToolset[Any], command: str, **args: object) -> dict[str, Any] | None:
    """Run the command if it is allowed without a person; return None otherwise."""
    return run(toolset, command, **args) if decision(toolset, command, **args).effect == "allow" else None


@pytest.fixture
def shell(project: Path) -> FunctionToolset[Any]:
    return shell_readonly(context(project, "shell_readonly"))


@pytest.mark.parametrize(("command", "expected"), ORDINARY)
def test_ordinary_commands_run_without_approval(shell: FunctionToolset[Any], command: str, expected: str) -> None:
    assert decision(shell, command).effect == "allow", decision(shell, command).reason
    result = run(shell, command)
    assert re.search(expected, result["stdout"], re.MULTILINE), result
    hidden = "./.env: Permission denied"  # with Landlock
    assert [line for line in result["stderr"].splitlines() if hidden not in line] == []


def test_commands_that_only_read_are_allowed(tmp_path: Path) -> None:
    for name in ("README.md", "package.json", "src/main.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shell = shell_readonly(context(tmp_path))
    listed = (Path(__file__).parent / "reading_commands.txt").read_text(encoding="utf-8").splitlines()
    refused = [line for line in listed if not line.startswith("#") and decision(shell, line).effect != "allow"]
    assert refused == []
    assert len(listed) > 150


def test_ordinary_commands_run_without_kernel_enforcement_too(project: Path) -> None:
    shell = shell_readonly(context(project, "shell_readonly", OFF))
    for command, expected in ORDINARY:
        assert re.search(expected, run(shell, command)["stdout"], re.MULTILINE), command


@pytest.mark.parametrize("command", WRITES_OR_RUNS)
def test_commands_that_may_write_or_run_others_are_blocked(
    shell: FunctionToolset[Any], project: Path, command: str
) -> None:
    (project / "evil").write_text("#!/bin/sh\ntouch marker\n")
    (project / "evil").chmod(0o755)
    for name in ("ls", "git", "src/ls"):
        (project / name).write_text("#!/bin/sh\ntouch marker\n")
        (project / name).chmod(0o755)
    before = (project / "notes.txt").read_text()
    assert run_without_approval(shell, command) is None
    assert decision(shell, command).effect == "deny"
    assert decision(shell, command).reason
    assert not (project / "marker").exists()
    assert (project / "notes.txt").read_text() == before


@pytest.mark.parametrize("command", READS_ELSEWHERE)
def test_reading_elsewhere_needs_approval(shell: FunctionToolset[Any], command: str) -> None:
    assert "secret" not in output_of(run_without_approval(shell, command))
    assert decision(shell, command).effect == "ask"


@pytest.mark.parametrize("cwd", ["..", "/", "leakdir", "missing", "notes.txt", "~", "src/../.."])
def test_a_directory_that_is_outside_or_missing_is_refused(shell: FunctionToolset[Any], cwd: str) -> None:
    assert decision(shell, "ls", cwd=cwd).effect == "deny"


def test_paths_are_relative_to_the_commands_working_directory(shell: FunctionToolset[Any], project: Path) -> None:
    assert run(shell, "cat ../notes.txt", cwd="src")["stdout"] == "pear\napple\nplum\n"
    assert decision(shell, "cat ../notes.txt", cwd="src").effect == "allow"
    assert decision(shell, "cat ../../secret.txt", cwd="src").effect == "ask"
    assert decision(shell, f"cat {project}/notes.txt", cwd="src").effect == "allow"


def test_programs_come_from_outside_the_project(
    shell: FunctionToolset[Any], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bin").mkdir()
    for name in ("ls", "git", "cat"):
        (project / "bin" / name).write_text("#!/bin/sh\ntouch marker\n")
        (project / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{project / 'bin'}:.:bin::{os.environ['PATH']}")
    monkeypatch.chdir(project)
    assert "notes.txt" in run(shell, "ls")["stdout"]
    assert "First words" in run(shell, "git log")["stdout"]
    assert not (project / "marker").exists()


FRAGMENTS = [
    *READING_PROGRAMS,
    *("status", "log", "diff", "show", "rm", "sh", "touch", "env", "marker", "notes.txt", ".", "..", "/", "leak", "~"),
    *(
        "-o",
        "-exec",
        "-delete",
        "--output=marker",
        "-c",
        "-C",
        "-n",
        "-r",
        "-O",
        "-i",
        "--",
        "-",
        "-fprint",
        "-M",
        "-U",
    ),
    *(";", "&&", "|", "||", "&", ">", "<", "$(", ")", "`", "'", '"', "\\", "\n", "$X", "*", "{a,b}", "#", "{}", "x"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=7), st.sampled_from([" ", ""]))
def test_only_literal_listed_commands_run_without_approval(words: list[str], gap: str) -> None:
    text = gap.join(words)
    toolset = shell_readonly(context(Path(__file__).parent, "shell_readonly"))
    if decision(toolset, text).effect != "allow":
        return
    for argv in parse_command(text):
        assert argv[0] in READING_PROGRAMS
        assert argv[0] not in WRAPPERS | (INTERPRETERS - {"git", "sed", "awk", "gawk", "mawk", "nawk"})
        reading = read_command(argv)
        assert reading.reads, argv
        assert not reading.unknown, argv
        paths = [piece.text for piece in reading.pieces if piece.role in ("path", "any", "ref")]
        assert not any(path.startswith(("/", "..")) for path in paths), argv


@given(st.text(max_size=40))
def test_any_text_gets_a_decision(text: str) -> None:
    toolset = shell_readonly(context(Path(__file__).parent, "shell_readonly"))
    found = decision(toolset, text)
    try:
        parse_command(text)
    except CommandRefusedError:
        assert found.effect == "deny"
    else:
        assert found.effect in ("allow", "ask", "deny")
