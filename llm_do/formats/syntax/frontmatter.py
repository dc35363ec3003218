"""Splitting an `.agent` file into frontmatter and body, without parsing either.

A file whose frontmatter is almost right is an error, so that an agent never disappears silently.
"""

from __future__ import annotations

import re

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import files as problems
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.source import Source, text_fault

__all__ = ["Frontmatter", "split_frontmatter"]

_NEARLY = r"[ \t\ufeff]*[-\u2010-\u2015]{2,}[ \t]*(?=[\r\n]|\Z)"
_NEARLY_CLOSE = r"(?<=[\r\n])[ \t]*(?:-{3,}|[\u2010-\u2015]+|\.\.\.)[ \t]*(?=[\r\n]|\Z)"
_BLANK = " \t\r\n"


@frozen
class Frontmatter:
    """The two parts of an `.agent` file.

    Args:
        start: Offset of the frontmatter, after the first line.
        end: Offset of the line that closes it.
        body: The instructions: blank lines around them dropped, line ends as LF, otherwise as written.
        body_start: Offset of the body in the text; -1 when it is empty.
    """

    start: int
    end: int
    body: str
    body_start: int


def split_frontmatter(source: Source) -> Frontmatter | Diagnostic:
    """Split the text of an `.agent` file.

    Example:
        >>> parts = split_frontmatter(Source("a.agent", "---\\nname: a\\n---\\n\\nHello.\\n---\\nMore.\\n"))
        >>> parts.body
        'Hello.\\n---\\nMore.'
    """
    text = source.text
    fault = text_fault(source)
    if fault is not None:
        return fault
    if text[:3] != "---" or text[3:4] not in ("\n", "\r"):
        return _no_opening(source)
    start = 5 if text[3:5] == "\r\n" else 4
    close = _closing(text, start)
    if close < 0:
        return _no_close(source, start)
    body, body_start = _body(text, close + 3)
    return Frontmatter(start, close, body, body_start)


def _closing(text: str, start: int) -> int:
    """Offset of the first line from `start` that is exactly ---, or -1."""
    at = text.find("---", start)
    while at >= 0:
        if text[at - 1] in "\r\n" and text[at + 3 : at + 4] in ("", "\r", "\n"):
            return at
        at = text.find("---", at + 1)
    return -1


def _body(text: str, begin: int) -> tuple[str, int]:
    """The body after `begin` without blank lines around it, and where it starts."""
    first = len(text) - len(text[begin:].lstrip(_BLANK))
    if first == len(text):
        return "", -1
    start = max(text.rfind("\n", begin, first), text.rfind("\r", begin, first)) + 1
    last = len(text.rstrip(_BLANK))
    ends = [at for at in (text.find("\r", last), text.find("\n", last)) if at >= 0]
    body = text[start : min(ends, default=len(text))]
    return (body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body), start


def _no_opening(source: Source) -> Diagnostic:
    text = source.text
    at = len(text) - len(text.lstrip(_BLANK))
    at = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    nearly = re.compile(_NEARLY).match(text, at)
    if not text.strip():
        return problems.empty_agent_file().at(Location(source.file))
    if nearly is None:
        return problems.no_frontmatter().at(Location(source.file))
    if nearly.group() == "---":
        problem = problems.blank_lines_first() if at else problems.unfinished_line()
    elif nearly.group().strip(" \t\ufeff") == "---":
        problem = problems.blanks_around_opening()
    else:
        problem = problems.wrong_opening(nearly.group().strip()[:40])
    return problem.at(source.place(nearly.start(), nearly.end()))


def _no_close(source: Source, start: int) -> Diagnostic:
    nearly = re.compile(_NEARLY_CLOSE).search(source.text, start - 1)
    if nearly is None:
        return problems.unclosed_frontmatter().at(source.place(0, 3))
    line, _ = source.position(nearly.start())
    return problems.wrong_closing(line, nearly.group()[:40]).at(source.place(nearly.start(), nearly.end()))
