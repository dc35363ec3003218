"""Commands against rules: every known way around `git log *`, and what a deny rule still matches."""

from __future__ import annotations

from llm_do.policy.arguments import split_command
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from tests.support.tables import each_row


def run(line: str) -> ToolCallInfo:
    return ToolCallInfo("shell", {"command": line}, primary="command", resolved={"command": split_command(line)})


def allows(rule: str, line: str) -> bool:
    return matches(parse_pattern(f"shell({rule})"), run(line))


def denies(rule: str, line: str) -> bool:
    return matches(parse_pattern(f"shell({rule})"), run(line), restrictive=True)


@each_row(
    "line",
    [
        "git log",
        "git log -3",
        "git log --oneline --graph HEAD~3..main",
        "git log --stat -- src/a.py",
        "git log -p -SOutput",
        "git log --text",
        "git log --no-ext-diff",
        "git log | git log",
    ],
)
def test_git_log_star_allows(line: str) -> None:
    assert allows("git log *", line)


@each_row(
    "line",
    [
        # chains, and everything that isn't a plain pipeline
        "git log; rm x",
        "git log && rm x",
        "git log || rm x",
        "git log & rm x",
        "git log\nrm x",
        "git log > x",
        "git log < x",
        "git log $(rm x)",
        "git log `rm x`",
        "git log <(rm x)",
        "(git log)",
        "git log | rm x",
        "rm x | git log",
        "git log | tee x",
        "git log |",
        "",
        # before the subcommand
        "git -C / log",
        "git -c core.pager=x log",
        "git --exec-path=/tmp log",
        "git --git-dir=x log",
        "git -p log",
        # after it
        "git log --output=x",
        "git log --output x",
        "git log --outp=x",
        "git log --o=x",
        "git log -- --output=x",
        "git log --ext-diff",
        "git log --ext",
        "git log --textconv",
        "git log -c",
        "git log -Oless",
        "git log ../x",
        "git log /etc/passwd",
        "git log --work=x",
        "git log --opt=/etc",
        "git log --opt=../x",
        "git log ~/x",
        # other programs
        "./git log",
        "/opt/x/git log",
        "/usr/bin/git log",
        "env git log",
        "nice git log",
        "timeout 5 git log",
        "xargs git log",
        "sh -c log",
        "sudo git log",
        "command git log",
        "nohup git log",
        "GIT_PAGER=x git log",
        "Git log",
        "gitlog",
        "git logs",
        "git",
        "log",
    ],
)
def test_git_log_star_does_not_allow(line: str) -> None:
    assert not allows("git log *", line)


@each_row(
    "rule, line",
    [
        ("find *", "find . -name x.py"),
        ("sort *", "sort -u -k2,2 x"),
        ("sort *", "sort -to x"),
        ("uniq *", "uniq -c x"),
        ("grep *", "grep -o -e x y"),
        ("tar *", "tar tf x.tar"),
        ("sort -o sorted.txt *", "sort -o sorted.txt x"),
        ("git log --output=* *", "git log --output=x HEAD"),
        ("git -C docs log *", "git -C docs log -3"),
        ("env git log *", "env git log -3"),
        ("./run.sh *", "./run.sh x"),
        ("scripts/* *", "scripts/build x"),
        ("cat docs/*", "cat docs/a.md"),
        ("cat docs/**", "cat docs/a/b.md"),
        ("cat ../docs.md", "cat ../docs.md"),
        ("cat /etc/*", "cat /etc/hosts"),
        ("git * --stat", "git log --stat"),
        ("git *", "git push origin main"),
        ("pytest *", "pytest -x tests"),
        ("*", "sudo ./anything --output=x"),
        ("git log | *", "git log | sh"),
        ("'git' \"log\" -3", "git log -3"),
    ],
)
def test_a_rule_allows_commands_that_match_literally(rule: str, line: str) -> None:
    assert allows(rule, line)


@each_row(
    "rule, line",
    [
        ("find *", "find . -exec rm x"),
        ("find *", "find . -execdir rm x"),
        ("find *", "find . -ok rm x"),
        ("find *", "find . -delete"),
        ("find *", "find . -fprintf x y"),
        ("find *", "find . -fls x"),
        ("sort *", "sort -o x y"),
        ("sort *", "sort -ox y"),
        ("sort *", "sort -uo x y"),
        ("sort *", "sort y --output=x"),
        ("sort *", "sort y --out=x"),
        ("sort *", "sort --compress-program=sh y"),
        ("sort *", "sort --comp=sh y"),
        ("uniq *", "uniq in out"),
        ("tar *", "tar xIf sh x.tar"),
        ("tar *", "tar -x --to-command=sh -f x"),
        ("tar *", "tar xf x --checkpoint-action=exec=sh"),
        ("rg *", "rg --pre sh x"),
        ("fd *", "fd x -x rm"),
        ("sed *", "sed -ni p x"),
        ("make *", "make -f other"),
        ("curl *", "curl -so x http://example.org"),
        ("curl -s https://example.org/** *", "curl -s https://example.org/a -X DELETE"),
        ("curl -s https://example.org/** *", "curl -s https://example.org/a --request=PUT"),
        ("curl -s https://example.org/** *", "curl -s https://example.org/a -d x=1"),
        ("curl -s https://example.org/** *", "curl -s https://example.org/a --json '{}'"),
        ("env git log *", "env git log --output=x"),
        ("xargs grep *", "xargs grep --color x /etc"),
        ("sometool *", "sometool --exec rm"),
        ("sometool *", "sometool --on-exec=rm"),
        ("sometool *", "sometool -o x"),
        ("sometool *", "sometool -output x"),
        ("sometool *", "sometool --outp x"),
        ("sometool *", "sometool --config=x"),
        ("git * log", "git -C log"),
        ("git * log", "git --bare log"),
        ("git --* log", "git --exec-path=x log"),
        ("cat *.txt", "cat -x.txt"),
        ("cat docs/*", "cat docs/a/b"),
        ("cat docs/**", "cat docs/../x"),
        ("cat docs/**", "cat docs/a ../x"),
        ("cat **/passwd", "cat /etc/passwd"),
        ("cat *", "cat ../x"),
        ("cat *", "cat /etc/passwd"),
        ("git status", "git status -s"),
        ("g* log", "./g log"),
        ("* log", "sudo log"),
        ("* log", "X=1 log"),
        ("./* x", "git x"),
        ("bin/* x", "bin/../git x"),
        ("'*'", "ls"),
        ("git |", "git"),
    ],
)
def test_a_rule_does_not_allow_other_commands(rule: str, line: str) -> None:
    assert not allows(rule, line)


@each_row(
    "rule, line",
    [
        ("rm *", "rm x"),
        ("rm", "rm -rf x"),
        ("rm *", "git log | rm x"),
        ("rm *", "/bin/rm x"),
        ("rm *", "./rm x"),
        ("rm *", "RM.EXE x"),
        ("rm *", "env A=1 rm x"),
        ("rm *", "sudo -u me /bin/rm x"),
        ("rm *", "xargs rm"),
        ("rm *", "timeout 5 nice rm x"),
        ("rm *", "find . -exec rm x"),
        ("rm *", "A=1 rm x"),
        ("rm *", "git log; rm x"),
        ("git push *", "git push"),
        ("git push *", "git -C /x push origin"),
        ("git push *", "git --no-pager -c a=b push"),
        ("git push --force *", "git push origin main --force"),
        ("git push --force *", "git push --forc"),
        ("git push --force-with-lease *", "git push --force-with-lease=x"),
        ("git push -f *", "git push -uf origin"),
        ("rm -rf *", "rm -fr x"),
        ("rm -rf *", "rm x -f -r"),
        ("cat secret*", "cat ./secret.txt"),
        ("curl * | sh", "curl x | sh"),
        ("curl * | sh", "curl x | tee y | sh"),
        ("*", "ls"),
    ],
)
def test_a_deny_rule_matches(rule: str, line: str) -> None:
    assert denies(rule, line)


def test_a_deny_rule_looks_into_a_script() -> None:
    for argv in (("sh", "-c", "cd /; rm x"), ("bash", "-lc", "true&&rm x"), ("python3", "-c", "os.system('rm x')")):
        call = ToolCallInfo("shell", {"command": ""}, primary="command", resolved={"command": (argv,)})
        assert matches(parse_pattern("shell(rm *)"), call, restrictive=True), argv


@each_row(
    "rule, line",
    [
        ("rm *", "git rm x"),
        ("rm *", "ls rm"),
        ("git push *", "git log --grep push"),
        ("git push --force *", "git push origin"),
        ("rm -rf *", "rm -r x"),
        ("curl * | sh", "curl x"),
        ("curl * | sh", "sh | curl x"),
    ],
)
def test_a_deny_rule_does_not_match_other_commands(rule: str, line: str) -> None:
    assert not denies(rule, line)


def test_a_script_too_long_to_search_is_denied_quickly() -> None:
    script = ToolCallInfo(
        "shell", {"command": ""}, primary="command", resolved={"command": (("sh", "-c", "a " * 10**5),)}
    )
    assert matches(parse_pattern("shell(rm *)"), script, restrictive=True)
    short = ToolCallInfo(
        "shell", {"command": ""}, primary="command", resolved={"command": (("sh", "-c", "rm " * 300),)}
    )
    assert not matches(parse_pattern("shell(rm -rf x *)"), short, restrictive=True)
