"""Writes docs/cli.md out of the commands' own help: `python docs/make_cli.py`. A test compares."""

from __future__ import annotations

import contextlib
import io
import os
from importlib import import_module
from pathlib import Path

from typer.main import get_command

from llm_do.cli.app import COMMANDS, command_module, run

PAGE = Path(__file__).with_name("cli.md")

HEAD = """\
# Command line

What `llm-do --help` and `llm-do COMMAND --help` print. [Running](running.md) explains input, output and exit codes,
[Approvals](approvals.md) questions and rules, [Threads](threads.md) persistent conversations.

Completion for your shell: `llm-do --install-completion`. It completes commands, options, models, and the agents,
threads, runs and batches of the project in the current folder.
"""


def page() -> str:
    """The page as the commands make it."""
    parts = [HEAD, f"```text\n{_help([])}```\n"]
    for name in COMMANDS:
        parts.append(f"## {name}\n\n```text\n{_help([name])}```\n")
        group = get_command(import_module(command_module(name)).app)
        parts += [
            f"### {name} {command}\n\n```text\n{_help([name, command])}```\n"
            for command in getattr(group, "commands", ())
        ]
    return "\n".join(parts)


def _help(words: list[str]) -> str:
    out = io.StringIO()
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(out):
        run([*words, "--help"])
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
