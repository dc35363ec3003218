"""Checks on rules: their test cases, and rules that grant too much."""

from __future__ import annotations

from llm_do.policy.pattern import parse_pattern
from llm_do.policy.proofs import check_examples as examples_of, is_overly_broad
from llm_do.policy.rules import Rule, RuleFault
from llm_do.policy.tool_facts import ToolFacts
from llm_do.project.tools.builtin_toolsets import FILES, SHELL
from tests.support.tables import each_row

TOOLS = {
    **FILES,
    **SHELL,
    "send": ToolFacts(arguments=("to", "kind"), primary="to"),
    "lend": ToolFacts(arguments=("title", "member")),
}


def spoken(rule: Rule) -> list[ToolFacts]:
    """Return the tools that a rule matches, including prefixed ones."""
    names = {name: (name, f"docs_{name}", f"git_{name}") for name in TOOLS}
    return [TOOLS[name] for name, shown in names.items() if any(map(rule.pattern.names_tool, shown))]


def check_examples(rule: Rule) -> tuple[RuleFault, ...]:
    return examples_of(rule, spoken(rule))


def rule(text: str, effect: str = "allow", **examples: tuple[str, ...]) -> Rule:
    return Rule(effect, parse_pattern(text), text, path=("approvals", effect, 0), **examples)  # type: ignore[arg-type]


def test_a_rule_whose_examples_hold_is_valid() -> None:
    for good in (
        rule(
            "shell(git log *)",
            allows=("git log -3", "git log"),
            refuses=("git log --output=x", "git -C / log", "git log; rm x", "git log | rm x", ""),
        ),
        rule("shell(command=git log *)", allows=("git log",), refuses=("git push",)),
        rule("shell(rm *)", "deny", allows=("ls",), refuses=("rm x", "env rm x", "ls; rm x", "ls > x")),
        rule("write_file(reports/**)", allows=("reports/a/b",), refuses=("x", "reports/../x", "/reports/a", "~/x")),
        rule("docs_write_file(*.md)", "ask", allows=("a.txt",), refuses=("a.md", "../x")),
        rule("writer:send(to=*@a.org, kind=mail)", allows=("to=x@a.org, kind=mail",), refuses=("to=x, kind=mail",)),
        rule("main/writer:send(to=ann)", allows=("ann",), refuses=("bob",)),
        rule("send(*)", allows=("ann",)),
        rule("*_file(reports/**)", allows=("reports/a",), refuses=("x", "reports/../x")),
        rule("[rw]*_file(reports/*)", allows=("reports/a",), refuses=("reports/a/b",)),
        rule("shel?(git log *)", allows=("git log -3",), refuses=("git log; x",)),
        rule("*_shell(git log *)", allows=("git log -3",), refuses=("git log; x",)),
        rule("*(to=ann)", allows=("ann",), refuses=("bob",)),
        rule("[ot]*:send(to=ann)", allows=("ann",), refuses=("bob",)),
        rule("main/?x:send(to=ann)", allows=("ann",), refuses=("bob",)),
        rule("main/[!a]*/**:send(to=ann)", allows=("ann",), refuses=("bob",)),
        rule("**/x:send(to=ann)", "ask", allows=("bob",), refuses=("ann",)),
        rule("send", allows=("anything",)),
    ):
        assert check_examples(good) == ()


def test_a_failing_example_is_reported_at_its_own_location() -> None:
    faults = check_examples(rule("shell(git log *)", allows=("git log", "git push"), refuses=("git log -3",)))
    assert [(fault.path, fault.message) for fault in faults] == [
        (
            ("approvals", "allow", 0, "allows", 1),
            "the rule shell(git log *) does not allow 'git push', which is listed under allows",
        ),
        (
            ("approvals", "allow", 0, "refuses", 0),
            "the rule shell(git log *) would allow 'git log -3', which is listed under refuses",
        ),
    ]
    deny = check_examples(rule("shell(rm *)", "deny", allows=("rm x",), refuses=("ls",)))
    assert [fault.message for fault in deny] == [
        "the rule shell(rm *) would deny 'rm x', which is listed under allows",
        "the rule shell(rm *) does not deny 'ls', which is listed under refuses",
    ]


def test_an_example_shaped_unlike_its_rule_is_reported() -> None:
    for example in ("ann", "to=ann", "to=(", "to=a, kind=b, more=c"):
        (fault,) = check_examples(rule("send(to=*, kind=*)", allows=(example,)))
        assert "doesn't fit" in fault.message


def test_an_example_written_as_a_call_never_passes_by_accident() -> None:
    (fault,) = check_examples(rule("write_file(out/**)", allows=("write_file(out/minutes.md)",)))
    assert fault.hint == "an example is the argument alone: write 'out/minutes.md'"
    (fault,) = check_examples(rule("shell(git *)", refuses=("shell(git push)",)))
    assert fault.hint == "an example is the argument alone: write 'git push'"
    assert check_examples(rule("shell(git log *)", refuses=("shell(git push)", "other(x)"))) == ()


def test_an_invalid_example_explains_the_format() -> None:
    (fault,) = check_examples(rule("write_file(out/**)", allows=("in/minutes.md",)))
    assert fault.hint == "correct the rule or the example, which is the argument alone, without the tool's name"
    (fault,) = check_examples(rule("lend(member=ann)", allows=("title=Emma, member=ann",)))
    assert fault.hint == "correct the rule or the example, which is the text of member alone, without the tool's name"


def test_a_directory_example_is_read_as_a_path() -> None:
    for good in (
        rule("shell(cwd=secret/**)", "deny", refuses=("secret", "./secret/x"), allows=("public",)),
        rule(
            "shell(command=make *, cwd=src/*)",
            allows=("command=make x, cwd=src/a",),
            refuses=("command=make x, cwd=src/a/b",),
        ),
    ):
        assert check_examples(good) == ()


def test_a_command_example_may_quote_its_words() -> None:
    for good in (
        rule("shell(ls *)", allows=("ls *.py", "ls src && ls 2>/dev/null"), refuses=("ls ../*", "ls; rm *", "ls > x")),
        rule(
            "shell(curl -s https://a.org/**)",
            allows=("curl -s https://a.org/b?c=d",),
            refuses=("curl -s https://b.org",),
        ),
        rule("shell(git commit -m *)", allows=("git commit -m 'fix it'", 'git commit -m "a; b"')),
        rule("shell(grep *)", allows=("grep 'a|b' x", r"grep a\ b x"), refuses=("grep 'a' $HOME", 'grep "$(rm x)"')),
        rule("shell(git show *)", allows=("git show stash@{0}",), refuses=("git show {a,b}",)),
        rule("shell(rm *)", "deny", allows=('echo "rm x"',), refuses=("rm 'a b'", "sh -c 'rm x'", "echo 'a")),
    ):
        assert check_examples(good) == ()


@each_row(
    "text",
    [
        "*",
        "*(*)",
        "agent:*",
        "*(path=*)",
        "shell",
        "sh*",
        "?hell",
        "shell(*)",
        "shell(**)",
        "git_shell(*)",
        "shell(command=*)",
        "shell(cwd=docs)",
        "shell(* log)",
        "shell(git *)",
        "shell(git log * | sh *)",
        "shell(env *)",
        "shell(/usr/bin/env *)",
        "shell(xargs grep *)",
        "shell(python *)",
    ],
)
def test_a_rule_that_grants_more_than_a_reader_expects_is_broad(text: str) -> None:
    assert is_overly_broad(rule(text), spoken(rule(text)))


@each_row(
    "text",
    [
        "send",
        "send*",
        "send(*)",
        "*(to=ann)",
        "write_file(**)",
        "shell(git log *)",
        "shell(ls *)",
        "shell(env)",
        "shell(python x.py *)",
    ],
)
def test_a_rule_that_grants_what_it_spells_out_is_not_broad(text: str) -> None:
    assert not is_overly_broad(rule(text), spoken(rule(text)))


def test_only_an_allow_rule_can_be_broad() -> None:
    assert not is_overly_broad(rule("*", "deny"), [*SHELL.values()])
    assert not is_overly_broad(rule("shell(*)", "ask"), [*SHELL.values()])


@each_row(
    "text",
    [
        *(
            "uv run *",
            "uv run --frozen *",
            "poetry run *",
            "pdm run *",
            "go run *",
            "npm exec *",
            "npx *",
            "kubectl exec *",
        ),
        *("kubectl exec web -- *", "docker exec *", "docker run *", "docker compose exec web *", "conda run -n x *"),
        *(
            "bundle exec *",
            "pnpm dlx *",
            "python -m *",
            "timeout 5 *",
            "env -i *",
            "node *",
            "perf record *",
            "uv tool *",
        ),
        *("git bisect run *", "git submodule foreach *", "coverage run *", "deno run *", "flock x *"),
    ],
)
def test_a_star_that_stands_for_a_program_is_broad(text: str) -> None:
    assert is_overly_broad(rule(f"shell({text})"), spoken(rule(f"shell({text})")))


@each_row(
    "text",
    [
        *("uv run pytest *", "poetry run ruff check *", "npx eslint *", "python -m pytest *", "timeout 60 pytest *"),
        *("docker ps *", "docker compose logs *", "docker exec web ls *", "kubectl get *", "kubectl exec web -- ls *"),
        *("git bisect *", "git submodule *", "npm run *", "npm test *", "uv sync *", "go test *", "env A=1 pytest *"),
        *("sed -n 1,5p *", "awk '{print $1}' *", "curl -s https://a.org/**", "sqlite3 -readonly x.db *"),
    ],
)
def test_a_rule_that_spells_the_program_out_is_not_broad(text: str) -> None:
    assert not is_overly_broad(rule(f"shell({text})"), spoken(rule(f"shell({text})")))
