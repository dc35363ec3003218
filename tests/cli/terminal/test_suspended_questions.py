"""A question that a person is asked is there again after Ctrl-Z and `fg`, in a real shell."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from tests.cli.cli_processes import LLM_DO, environment

ASK = "- tools: [{name: send, args: {to: ann}}]\n- text: 'result: {tool}'"


@pytest.fixture
def shell(project: Callable[..., Path]) -> Iterator[pexpect.spawn]:
    started = pexpect.spawn(
        "bash",
        ["--norc", "--noediting", "-i"],
        cwd=str(project(ASK)),
        env=environment(LLM_DO_TRUST=None, TERM="xterm", NO_COLOR="1"),
        encoding="utf-8",
        timeout=15,
    )
    yield started
    started.close(force=True)


def suspend(shell: pexpect.spawn, *shown: str) -> None:
    """Suspend what runs, and continue it; wait for what is shown then."""
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    shell.sendline("fg")
    for text in shown:
        shell.expect_exact(text)


def test_a_question_about_a_call_is_drawn_again(shell: pexpect.spawn) -> None:
    shell.sendline(f"LLM_DO_TRUST=1 {shlex.join(LLM_DO)} run x")
    shell.expect_exact("allow? ")
    suspend(shell, "main wants to call send", "to: ann", "yes, this once", "allow? ")
    shell.send("what?\r")
    shell.expect_exact("allow? ")
    suspend(shell, "main wants to call send", "allow? what?\r\n", "yes, this once", "allow? ")
    shell.send("v\r")
    shell.expect_exact("n denies: ")
    suspend(shell, "main wants to call send", "n denies: ")
    shell.send("q\r")
    shell.expect_exact("allow? ")
    suspend(shell, "main wants to call send", "yes, this once", "allow? what?\r\n", "allow? ")
    shell.send("y\r")
    shell.expect_exact("result: ")


@pytest.mark.slow
def test_a_rule_that_is_edited_is_drawn_again_with_its_question(shell: pexpect.spawn) -> None:
    shell.sendline(f"LLM_DO_TRUST=1 {shlex.join(LLM_DO)} run x")
    shell.expect_exact("allow? ")
    shell.send("p\r")
    shell.expect_exact("rule: ")
    suspend(shell, "main wants to call send", "rule: ", "main:send")
    shell.send("\r")
    shell.expect_exact("result: ")


@pytest.mark.slow
def test_the_question_whether_a_folder_is_trusted_is_drawn_again(shell: pexpect.spawn) -> None:
    shell.sendline(f"{shlex.join(LLM_DO)} run x")
    shell.expect_exact("trust? ")
    suspend(shell, "this folder isn't trusted", "trust? ")
    shell.send("o\r")
    shell.expect_exact("allow? ")
