"""A `*` at the end of an allowed command doesn't cover arguments that make the program run something else."""

from __future__ import annotations

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from tests.support.tables import each_row


def allowed(rule: str, *argv: str) -> bool:
    call = ToolCallInfo("shell", {}, primary="command", resolved={"command": (argv,)})
    return matches(parse_pattern(f"shell({rule})"), call)


@each_row(
    "rule, argv",
    [
        ("make test *", ["make", "test", "X:=$(shell touch x)"]),
        ("make test *", ["make", "test", "X=$(shell touch x)"]),
        ("make test *", ["make", "test", "SHELL=out/evil"]),
        ("make *", ["make", "CC=out/evil"]),
        ("make test *", ["make", "test", "--eval=x"]),
        ("make test *", ["make", "test", "-Eall:"]),
        ("make * all", ["make", "X!=touch x", "all"]),
        ("gmake test *", ["gmake", "test", "SHELL=out/evil"]),
        ("go build *", ["go", "build", "-toolexec=out/evil"]),
        ("go vet *", ["go", "vet", "-vettool=out/evil"]),
        ("foo run *", ["foo", "run", "--postcmd=x"]),
        ("foo run *", ["foo", "run", "--runcommand", "x"]),
        ("foo run *", ["foo", "run", "--my-script", "x"]),
    ],
)
def test_a_star_does_not_cover_arguments_that_run_another_program(rule: str, argv: list[str]) -> None:
    assert not allowed(rule, *argv)


@each_row(
    "rule, argv",
    [
        ("make test *", ["make", "test", "-j4", "-k"]),
        ("make test *", ["make", "test", "unit"]),
        ("make test X=*", ["make", "test", "X=1"]),
        ("make test V=1", ["make", "test", "V=1"]),
        ("go test *", ["go", "test", "-run=TestX", "-timeout=3s", "./pkg"]),
        ("foo run *", ["foo", "run", "--description=x", "--timeout", "3", "--checkout"]),
        ("foo run *", ["foo", "run", "a=b"]),
    ],
)
def test_a_star_covers_ordinary_arguments(rule: str, argv: list[str]) -> None:
    assert allowed(rule, *argv)
