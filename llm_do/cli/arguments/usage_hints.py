"""What to write instead of commands and options that llm-do doesn't have: those of other tools, and those of 0.3."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Any

from llm_do.errors import UsageError
from llm_do.text.sanitizer import shell_word, shell_words
from llm_do.text.words import closest_match
from llm_do.ui.reports.error_text import sentence

__all__ = ["hint_for_command", "hint_for_option", "hint_for_words", "usage_error"]

_COMMAND = re.compile(r"No such command '(.*?)'\.")
_OPTION = re.compile(r"No such option: (\S+)")
_EXTRA = re.compile(r"unexpected extra argument\(?s?\)? \((.*)\)")
"""What the parser says, since its classes are not public."""

_RUN = 'run a project with `llm-do run PROJECT "PROMPT"`'
_CHAT = "start a conversation with `llm-do chat PROJECT`"
_CONTINUE = "`llm-do chat --continue` continues the most recent conversation"
_KEYS = (
    "a provider's key is an environment variable or a line of `.env`; `llm-do models --all` names the variable of each"
)
_SETTINGS = "set it under `model_settings` in the agent file, such as `model_settings: {temperature: 0}`"

_COMMANDS = {
    **dict.fromkeys(("new", "create", "start", "scaffold", "generate"), "create a project with `llm-do init DIR`"),
    **dict.fromkeys(("ask", "exec", "execute", "prompt", "query", "call", "do"), _RUN),
    **dict.fromkeys(("lint", "validate", "verify", "link", "build"), "check a project with `llm-do check PROJECT`"),
    **dict.fromkeys(("tests", "pytest", "eval", "evals"), "run a project's tests with `llm-do test PROJECT`"),
    **dict.fromkeys(("repl", "interactive", "shell", "talk", "tui"), _CHAT),
    **dict.fromkeys(("resume", "continue"), _CONTINUE),
    **dict.fromkeys(
        ("list", "ls", "show", "agents", "agent", "info", "inspect"),
        "see a project's agents and tools with `llm-do graph PROJECT`",
    ),
    **dict.fromkeys(("keys", "key", "config", "configure", "auth", "login"), _KEYS),
    **dict.fromkeys(("install", "pull", "download"), "download the local model with `llm-do models pull`"),
    **dict.fromkeys(("logs", "log", "history", "journal"), "list recorded runs with `llm-do runs list PROJECT`"),
    **dict.fromkeys(("costs", "cost", "usage", "spend"), "sum up what runs have used with `llm-do runs costs PROJECT`"),
    **dict.fromkeys(
        ("prune", "clean", "cleanup", "gc"), "delete old records with `llm-do runs prune --older-than 90d`"
    ),
    **dict.fromkeys(("compare", "diff"), "compare two runs with `llm-do runs compare`"),
    "drop": "end a run that waits to be resumed with `llm-do runs drop RUN_ID`",
    **dict.fromkeys(("pending", "questions"), "list what waits for an answer with `llm-do approvals pending PROJECT`"),
    **dict.fromkeys(("answer", "approve"), "answer a question with `llm-do approvals answer QUESTION_ID allow`"),
    **dict.fromkeys(("sessions", "conversations"), "list conversations with `llm-do threads list PROJECT`"),
    **dict.fromkeys(
        ("permissions", "rules", "allow", "explain"), "see `llm-do approvals`, which lists and explains them"
    ),
    "help": "write `llm-do --help`, or `llm-do COMMAND --help`",
    "version": "write `llm-do --version`",
}
"""Words that people try as commands, and what to write."""

_OPTIONS = {
    **dict.fromkeys(("--prompt", "--message", "--input", "-i"), f"the prompt is an argument: {_RUN}"),
    **dict.fromkeys(("--yes", "-y", "--yolo", "--auto-approve", "--force"), "`--approve-all` allows every call"),
    **dict.fromkeys(("--stream", "--no-stream"), "`-vv` streams text to stderr"),
    **dict.fromkeys(("--temperature", "-t", "--top-p", "--max-tokens", "--seed"), _SETTINGS),
    **dict.fromkeys(
        ("--system", "--system-prompt", "--instructions"), "write instructions below the frontmatter of the agent file"
    ),
    **dict.fromkeys(("--key", "--api-key"), _KEYS),
    **dict.fromkeys(("--file", "-f"), "`--attach FILE` attaches a file"),
    **dict.fromkeys(("--continue", "-c", "--resume"), _CONTINUE),
    **dict.fromkeys(("--budget", "--max-cost"), "`--budget-usd` limits the cost"),
    **dict.fromkeys(("--max-turns", "--max-iterations"), "`--max-steps` limits the model requests of an agent"),
    **dict.fromkeys(
        ("--headless", "--print", "--non-interactive"),
        "leave it out: without a terminal, calls that need approval are denied",
    ),
    **dict.fromkeys(("--tui", "--chat", "--interactive"), _CHAT),
    "--init-python": "list Python files under `python_files` in project.json",
}
"""Options that people try, and what to write."""


def usage_error(error: Any, args: Sequence[str]) -> UsageError:
    """A fault that the parser found in a command line, with what to write instead.

    Args:
        error: The parser's exception. Its class isn't public, but its attributes are those of click.
        args: The command line.
    """
    message = " ".join(error.format_message().split())
    command, context = "llm-do", error.ctx
    options: list[str] = []
    commands: Sequence[str] = ()
    if context is not None:
        command = context.command_path
        options = [name for param in context.command.params for name in param.opts]
        commands = list(getattr(context.command, "commands", ()))
    hint: str | None = None
    if found := _COMMAND.match(message):
        message = found[0]
        rest: Sequence[str] = args[list(args).index(found[1]) + 1 :] if found[1] in args else []
        hint = hint_for_command(found[1], rest, commands) if command == "llm-do" else _near_command(found[1], commands)
    elif found := _OPTION.match(message):
        message = f"there is no option {found[1]}"
        hint = hint_for_option(found[1], options)
    elif (found := _EXTRA.search(message)) and context is not None:
        words = [context.params.get(name) for name in ("project", "prompt")]
        if None not in words:
            message = "there are too many arguments"
            hint = hint_for_words(command, [*words, found[1]])
    see = f"see `{command} --help`"
    return UsageError(message, hint=f"{sentence(hint, capital=True)} {sentence(see, capital=True)}" if hint else see)


def hint_for_command(word: str, rest: Sequence[str], known: Collection[str]) -> str:
    """What to write instead of a command that doesn't exist.

    Example:
        >>> hint_for_command("rnu", [], ["run"]), hint_for_command("new", ["shop"], ["run"])
        ('did you mean `run`?', 'create a project with `llm-do init DIR`')
    """
    if os.path.lexists(word) or word.endswith((".agent", ".json")):
        return f"to run this project, write: llm-do run {shell_words([word, *rest])}"
    if word.startswith("-"):
        return _OPTIONS.get(word) or f"options follow the command, as in `llm-do run {word}`"
    close = closest_match(word, known)
    if word in _COMMANDS:
        return _COMMANDS[word]
    if close is not None:
        return f"did you mean `{close}`?"
    if " " in word:
        return f"to run the project of this folder with it as the prompt, write: llm-do run {shell_word(word)}"
    return f"the commands are {', '.join(known)}"


def hint_for_option(name: str, known: Collection[str]) -> str | None:
    """What to write instead of an option that a command doesn't have, None if nothing comes to mind.

    Example:
        >>> hint_for_option("--modle", ["--model", "--max-depth"])
        'did you mean `--model`?'
    """
    close = closest_match(name, [each for each in known if each.startswith("--")], spelling_only=True)
    if close is not None:
        return f"did you mean `{close}`?"
    if name in _OPTIONS:
        return _OPTIONS[name]
    close = closest_match(name, [each for each in known if each.startswith("--")]) if name.startswith("--") else None
    return f"did you mean `{close}`?" if close else None


def hint_for_words(command: str, words: Sequence[str]) -> str:
    """How to write a prompt of several words, of which the shell has made an argument each.

    Example:
        >>> hint_for_words("llm-do run", ["no-such-file", "or", "folder"])
        "quote a prompt of several words: llm-do run 'no-such-file or folder'"
    """
    count = 1 if os.path.lexists(words[0]) else 0
    return f"quote a prompt of several words: {command} {shell_words([*words[:count], ' '.join(words[count:])])}"


def _near_command(word: str, known: Collection[str]) -> str:
    close = closest_match(word, known)
    return f"did you mean `{close}`?" if close else f"the commands are {', '.join(known)}"
