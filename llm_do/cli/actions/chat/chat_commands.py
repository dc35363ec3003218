"""The commands of a chat, each a line that begins with a slash."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.cli.actions.new_files import create_file
from llm_do.cli.arguments.target import user_path
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import did_you_mean, with_count
from llm_do.ui.terminal.screen import terminal_columns
from llm_do.ui.terminal.text_width import wrap_words

if TYPE_CHECKING:
    from llm_do.cli.actions.chat.chat_session import Chat

__all__ = ["COMMANDS", "run_command"]

COMMANDS = {
    "/help": ("", "list the commands"),
    "/tools": ("[AGENT]", "list the tools that a model sees"),
    "/agents": ("", "list the project's agents"),
    "/model": ("[[AGENT=]MODEL]", "show the models, or change them from now on"),
    "/thread": ("[ID]", "show the conversation's thread, or continue another one"),
    "/state": ("", "show the state of the conversation and of its toolkits"),
    "/approvals": ("[revoke N]", "list the approvals of this session and the permanent ones, or revoke one"),
    "/undo": ("", "undo the last turn; what its tools did stays done"),
    "/retry": ("", "undo the last turn and send its message again"),
    "/save": ("FILE", "save the conversation as Markdown, or as JSON if FILE ends in .json"),
    "/quit": ("", "end the conversation"),
}
"""Name to arguments and description."""

_NO_TURN = "Turns before this chat, or before /thread, can be left behind with `llm-do threads branch`."

_NARROW = 60
"""On a terminal with fewer columns, a command's description is below it."""


async def run_command(chat: Chat, line: str) -> bool:
    """Run a command; False ends the conversation."""
    name, *rest = line.split(maxsplit=1)
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name}", hint=did_you_mean(name, COMMANDS) or "See /help.")
    if name == "/quit":
        return False
    await _ACTIONS[name](chat, "".join(rest).strip())
    return True


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        warn(sanitize(line))


async def _help(_chat: Chat, _: str) -> None:
    columns = terminal_columns() or 1000
    usages = {name: f"{name} {args}".rstrip() for name, (args, _) in COMMANDS.items()}
    widest = max(map(len, usages.values())) + 2 if columns >= _NARROW else 4
    for name, (_, about) in COMMANDS.items():
        first, *more = wrap_words(about, max(columns - widest, 20))
        if columns < _NARROW:
            _print([usages[name], *(f"    {piece}" for piece in (first, *more))])
        else:
            _print([f"{usages[name]:<{widest}}{first}", *(f"{'':<{widest}}{piece}" for piece in more)])
    _print(["@FILE in a message attaches a file; Alt-Enter or \\ at the end of a line starts a new line"])


async def _tools(chat: Chat, rest: str) -> None:
    from llm_do.ui.reports.tool_list import tool_lines, tools_data

    entry = chat.entry or chat.project.entry.name
    agent = rest or (entry if chat.project.registry.agent(entry) is not None else None)
    _print(tool_lines(tools_data(chat.project, agent)))


async def _agents(chat: Chat, _: str) -> None:
    for spec in chat.project.registry.agents():
        _print([f"{spec.name}: {spec.description or 'no description'}"])


async def _model(chat: Chat, rest: str) -> None:
    runtime = chat.session.runtime
    if rest:
        from llm_do.cli.arguments.named_models import named_models

        named = named_models([rest], chat.project)
        if named.everyone is not None:
            runtime.config = replace(runtime.config, model=named.everyone, models={})
        else:
            runtime.config = replace(runtime.config, models={**runtime.config.models, **named.agents})
    model = runtime.config.model
    shown = ", ".join(map(str, model)) if isinstance(model, list | tuple) else model
    _print([f"model: {shown or 'as each agent declares'}"])
    _print(f"model of {agent}: {name}" for agent, name in runtime.config.models.items())


async def _thread(chat: Chat, rest: str) -> None:
    if rest:
        count = await chat.memory.switch(rest)
        _print([f"thread {rest}: {with_count(count, 'message')}"])
        await chat.say_what_waits()
    else:
        _print([f"thread {chat.memory.thread}" if chat.memory.thread else "this conversation is not recorded"])


async def _state(chat: Chat, _: str) -> None:
    _print(json.dumps(await chat.memory.state(), indent=2, ensure_ascii=False).split("\n"))


async def _approvals(chat: Chat, rest: str) -> None:
    from llm_do.runtime.approval import saved_approvals

    approver = chat.session.runtime.approver
    stored = saved_approvals.load_saved_approvals(chat.project.root).stored
    if rest:
        word, _, number = rest.partition(" ")
        if word != "revoke" or not number.isdecimal() or not 0 < int(number) <= len(stored):
            raise UsageError("there is no such approval", hint="/approvals lists their numbers.")
        saved_approvals.revoke(chat.project.root, [stored[int(number) - 1]])
        approver.forget()
        _print(["revoked, together with the approvals of this session"])
        return
    _print(f"{number} {answer.text}  ({answer.place})" for number, answer in enumerate(stored, 1))
    _print(f"this session: {rule.text}" for rule in approver.session_rules)
    if approver.session_digests:
        count = len(approver.session_digests)
        _print([f"this session: {with_count(count, 'exact call')}"])
    if not (stored or approver.session_digests or approver.session_rules):
        _print(["no approvals"])


async def _undo(chat: Chat, _: str) -> None:
    if not chat.turns or not await chat.memory.undo():
        raise UsageError("there is no turn to undo", hint=_NO_TURN)
    _print([f"undone: {chat.turns.pop().text}"])


async def _retry(chat: Chat, _: str) -> None:
    if not chat.turns or not await chat.memory.undo():
        raise UsageError("there is no turn to retry", hint=_NO_TURN)
    await chat.turn(chat.turns.pop())


async def _save(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("/save needs a file", hint="Write /save FILE.")
    from llm_do.messages import to_messages
    from llm_do.runtime.record.results import messages_data

    messages = await chat.memory.messages()
    path = user_path(rest)
    if path.suffix == ".json":
        text = json.dumps(messages_data(messages), indent=2, ensure_ascii=False) + "\n"
    else:
        parts = [(message.role, message.content) for message in to_messages(messages)]
        text = "".join(f"## {who}\n\n{content}\n\n" for who, content in parts if content)
    _write(path, text)
    _print([f"{path}: {with_count(len(messages), 'message')}"])


def _write(path: Path, text: str) -> None:
    try:
        create_file(path, text.encode())
    except FileExistsError as error:
        raise UsageError(f"{path} exists already", hint="Name another file.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} can't be written: {reason}", hint="Name another file.") from error


_ACTIONS: dict[str, Callable[[Chat, str], Awaitable[None]]] = {
    "/help": _help,
    "/tools": _tools,
    "/agents": _agents,
    "/model": _model,
    "/thread": _thread,
    "/state": _state,
    "/approvals": _approvals,
    "/undo": _undo,
    "/retry": _retry,
    "/save": _save,
}
