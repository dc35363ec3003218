"""The question whether a folder is trusted: what it would run here, and what it may do without approval.

Every text of the project is sanitized. Long lists are cut with a count; `s` shows everything, the code included.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from llm_do.linker.analysis.survey import Survey, Surveyed
from llm_do.text.sanitizer import sanitize
from llm_do.ui.approval.frame import Frame
from llm_do.ui.approval.pager import view
from llm_do.ui.approval.question import QuestionText
from llm_do.ui.terminal.terminal import Terminal
from llm_do.ui.terminal.text_width import wrap_words

__all__ = ["TrustAnswer", "ask_trust"]

TrustAnswer = Literal["trust", "once", "no"]

_MOST = 5
"""Items of a list that the question itself shows."""

_LONGEST = 300
"""Characters of an item that the question itself shows."""

_LARGEST = 256 * 1024
"""Bytes of a file that are shown."""

_KEYS: dict[str, TrustAnswer | Literal["show"]] = {
    "t": "trust",
    "trust": "trust",
    "o": "once",
    "once": "once",
    "n": "no",
    "no": "no",
    "q": "no",
    "s": "show",
    "show": "show",
}
_PROMPT = "trust? "
_UNBROKEN = "\N{NO-BREAK SPACE}"


def ask_trust(terminal: Terminal, seen: Survey, frame: Frame, *, looks: bool, lasting: bool) -> TrustAnswer:
    """Ask a person about a folder; the end of input is no.

    Args:
        terminal: Where to ask.
        seen: What the folder runs and allows.
        frame: What the question is drawn with.
        looks: Whether the command only looks, so that no means reading text only.
        lasting: Whether the answer can be kept.
    """
    return asyncio.run(_ask(terminal, seen, frame, looks=looks, lasting=lasting))


async def _ask(terminal: Terminal, seen: Survey, frame: Frame, *, looks: bool, lasting: bool) -> TrustAnswer:
    head = _head(seen, frame, looks=looks)
    short = QuestionText(frame, head, _lists(seen, frame, complete=False), frame.bottom("nothing of it has run yet"))
    choices = _choices(frame, looks=looks, lasting=lasting)
    terminal.forget_typed()
    terminal.write(short.text() + choices)
    while True:
        terminal.write(_PROMPT)
        line = await terminal.read_line()
        if line is None:
            terminal.write("\n")
            return "no"
        key = _KEYS.get(line.strip().lower())
        if key == "trust" and not lasting:
            key = None
        if key is None:
            terminal.write(choices)
        elif key != "show":
            return key
        elif await view(terminal, _everything(seen, frame, head, short.foot)) in ("deny", "abort"):
            return "no"
        elif not terminal.is_plain:
            terminal.write(short.text() + choices)


def _head(seen: Survey, frame: Frame, *, looks: bool) -> list[str]:
    act = "looking at it" if looks else "running it"
    does = {
        "runs its Python code": seen.python,
        "runs servers that it names": seen.servers,
        "runs commands that it allows": seen.commands,
        "continues what is recorded in it": seen.records,
        "contacts a database that it names": seen.databases,
        "runs tools that may read or change protected files": seen.protected,
        "runs tools that reach beyond it": seen.reaches,
    }
    what = next(text for text, found in does.items() if found)
    return [
        *frame.top(f"this folder isn't trusted, and {act} {what}"),
        *frame.named("folder", sanitize(str(seen.root))),
    ]


def _choices(frame: Frame, *, looks: bool, lasting: bool) -> str:
    act = "look" if looks else "run"
    words = [f"t trust this folder and {act}"] if lasting else []
    words += [f"o {act} once", "s show the code", "n no, only read its text" if looks else "n no"]
    line = "   ".join(word.replace(" ", _UNBROKEN) for word in words)
    return "".join(f"{each.replace(_UNBROKEN, ' ')}\n" for each in wrap_words(line, max(frame.columns - 1, 20)))


def _groups(seen: Survey) -> Iterator[tuple[str, Sequence[Surveyed], str]]:
    """The lists with their names, and the colour of their items."""
    yield "Python", seen.python, "name"
    yield "Python that these can import", seen.helpers, ""
    yield "uses of installed packages", seen.packages, ""
    yield "starts the server" if len(seen.servers) == 1 else "starts servers", seen.servers, "name"
    yield "keeps its records in", seen.databases, "name"
    yield "continues by the answers and files that are recorded in", seen.records, "warn"
    yield "allowed without asking you", seen.allowed, "warn"
    yield "allowed too once you trust it", seen.found, "warn"
    yield "protected files that it may read or change", seen.protected, "bad"
    yield "reaches beyond this folder", seen.reaches, "bad"


def _lists(seen: Survey, frame: Frame, *, complete: bool) -> list[str]:
    lines: list[str] = []
    for name, items, style in _groups(seen):
        if not items:
            continue
        shown = [_item(item, complete=complete) for item in (items if complete else items[:_MOST])]
        left = len(items) - len(shown)
        if len(shown) == 1:
            lines += frame.named(name, shown[0], style)
        else:
            lines += frame.prose(f"{name}:", "quiet")
            for text in shown:
                lines += frame.row("", " ", text, style)
        if left:
            lines += frame.prose(f"  {frame.gap} and {left:,} more; s shows all", "warn")
    return lines


def _item(item: Surveyed, *, complete: bool) -> str:
    text = sanitize(item.text)
    if len(text) > _LONGEST and not complete:
        text = f"{text[:_LONGEST]} [{len(text) - _LONGEST:,} more characters; s shows all]"
    return f"{text}  ({sanitize(item.place)})" if item.place else text


def _everything(seen: Survey, frame: Frame, head: Sequence[str], foot: Sequence[str]) -> QuestionText:
    body = _lists(seen, frame, complete=True)
    for item in dict.fromkeys((*seen.python, *seen.programs, *seen.helpers)):
        body += frame.prose("")
        body += frame.named(sanitize(item.text), _text(seen.root, item.text))
    return QuestionText(frame, head, body, foot)


def _text(root: Path, label: str) -> str:
    """A file as it is shown: its start, if it is large."""
    try:
        number = os.open(root / label, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as stream:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return "it is not an ordinary file"
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        return f"it can't be read: {error.strerror or error}"
    text = sanitize(data[:_LARGEST].decode("utf-8", "backslashreplace"), lines=True).rstrip("\n")
    return f"{text}\n[it is longer: open it in an editor]" if len(data) > _LARGEST else text
