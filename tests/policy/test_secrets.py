"""Secret files are recognised at any depth, in any case, and in the words of a command."""

from __future__ import annotations

import pytest

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.secrets import SECRET_FILES, secret_file
from llm_do.policy.values import ToolCallInfo
from tests.support.tables import each_row

SECRET = [
    ".env",
    "web/.env.production",
    "SERVER.PEM",
    ".npmrc",
    "home/.netrc",
    ".pypirc",
    "keys/id_rsa",
    ".git/config",
    ".git/modules/lib/config",
    ".ssh/known_hosts",
    ".aws/credentials",
    "credentials",
    "app/credentials.json",
    ".config/gh/hosts.yml",
    "service-account-prod.json",
]
ORDINARY = [
    "id_rsa.pub",
    "git/config",
    ".git/HEAD",
    "credentials/form.py",
    "docs/credentials.md",
    "environment.py",
    "keyboard.json",
    "src/secrets.py",
]


@each_row("path", SECRET)
def test_files_that_hold_secrets_are_recognised(path: str) -> None:
    assert secret_file(path) in SECRET_FILES


@each_row("path", ORDINARY)
def test_ordinary_files_are_not_taken_for_secrets(path: str) -> None:
    assert secret_file(path) is None


@each_row("word", [".env", "./.env", "--file=.env", "-F.env", "x@.npmrc", "a/b/id_rsa", ".ssh/id"])
@each_row("rule", ["shell(cat *)", "shell(cat * *)", "shell(cat [!x]*)"])
def test_a_wildcard_covers_no_secret_file(rule: str, word: str) -> None:
    argv = ("cat", word) if rule.count(" ") == 1 else ("cat", "notes.txt", word)
    call = ToolCallInfo("shell", {}, primary="command", resolved={"command": (argv,)})

    assert not matches(parse_pattern(rule), call)


@pytest.mark.parametrize("rule", ["shell(cat .env)", "shell(cat .env*)"])
def test_a_rule_can_spell_a_secret_file_out(rule: str) -> None:
    call = ToolCallInfo("shell", {}, primary="command", resolved={"command": (("cat", ".env"),)})

    assert matches(parse_pattern(rule), call)
