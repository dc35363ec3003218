"""Why an MCP server can't be used, and what to do about it, in words for the person who configured it."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND

from llm_do._startup.frozen import frozen
from llm_do.formats.pasted_servers import split_command
from llm_do.formats.toolset_config import McpConfig
from llm_do.toolsets.mcp.large_answers import REFUSED
from llm_do.toolsets.mcp.protocol import Findings

__all__ = ["Reason", "explain_failure", "explain_status", "is_gone", "is_refused"]

_GONE = re.compile(
    r"connection (?:was )?(?:closed|lost|reset)|connecterror|failed to connect|connection attempts failed|not connected"
    r"|closedresource|brokenresource|endofstream|session (?:was |has been )?(?:closed|terminated|not found|expired)",
    re.IGNORECASE,
)
_LATER = "Try again later, or ask whoever runs it."
_MEANINGS: dict[int, tuple[str, str]] = {
    401: (
        "it needs credentials, or doesn't accept those that it got",
        'Set `headers`, such as {"Authorization": "Bearer ${TOKEN}"}.',
    ),
    403: ("it doesn't permit this with the credentials that it got", "Check the token in `headers`, and its scopes."),
    404: ("there is no MCP server at this address", "Check the path of the `url`; it often ends in /mcp."),
    405: ("there is no MCP server at this address", "Check the path of the `url`; it often ends in /mcp."),
    429: ("it has got too many requests", _LATER),
    500: ("it failed", "Look into its log."),
    502: ("it isn't available at the moment", _LATER),
    503: ("it isn't available at the moment", _LATER),
    504: ("it isn't available at the moment", _LATER),
}
_UNKNOWN = ("it refused the request", "Check the `url` and `headers`.")
_CHECK = "Check that the server starts on its own, or set `required: false` to run without it."
_LONGEST = 200


@frozen
class Reason:
    """Why a server can't be used, as the end of a sentence, and what to do."""

    text: str
    hint: str = _CHECK


def explain_failure(config: McpConfig, error: BaseException, findings: Findings) -> Reason:
    """Explain an error that came out of the client."""
    if findings.status is not None:
        return explain_status(findings.status)
    for cause in _causes(error):
        if config.command is not None and isinstance(cause, OSError) and cause.errno is not None:
            return _explain_program(config.command, cause)
    if config.command is not None:
        name = Path(config.command[0]).name
        if findings.noise:
            return Reason(f"`{name}` doesn't speak MCP: it printed {_shown(findings.noise[0])}")
        if any(isinstance(cause, MCPError) and cause.code == METHOD_NOT_FOUND for cause in _causes(error)):
            return Reason(f"`{name}` doesn't speak MCP: it doesn't know the request `initialize`")
        if is_gone(error):
            return Reason(f"`{name}` ended instead of answering")
    elif re.search(r"unexpected content type: *(\S*)", text := _first_line(error), re.IGNORECASE):
        kind = text.rpartition(":")[2].strip() or "no content type"
        return Reason(f"what answers there doesn't speak MCP: it sent {kind}", "Check the `url`.")
    elif is_gone(error):
        return Reason("nothing answers at its address", "Check the `url`, and that the server runs.")
    return Reason(_first_line(error))


def is_gone(error: BaseException) -> bool:
    """Whether the connection failed, not the tool."""
    return _GONE.search(f"{type(error).__name__} {error}") is not None


def is_refused(error: BaseException) -> bool:
    """Whether the server's answer isn't read, in which case our own error takes its place."""
    return any(isinstance(cause, MCPError) and cause.data == REFUSED for cause in _causes(error))


def explain_status(status: int) -> Reason:
    """Explain the HTTP status of an error.

    Example:
        >>> explain_status(503).text
        "it answered with HTTP 503 (Service Unavailable): it isn't available at the moment"
    """
    try:
        phrase = f" ({HTTPStatus(status).phrase})"
    except ValueError:
        phrase = ""
    meaning, hint = _MEANINGS.get(status) or (_MEANINGS[500] if status > 500 else _UNKNOWN)
    return Reason(f"it answered with HTTP {status}{phrase}: {meaning}", hint)


def _explain_program(command: list[str], error: OSError) -> Reason:
    program = command[0]
    if error.errno == errno.ENOENT:
        if len(words := split_command(program)) > 1:
            written = json.dumps([*words, *command[1:]], ensure_ascii=False)
            return Reason(f"there is no program {program!r}", f"Each word is an item of its own: {written}.")
        where = "" if "/" in program else " on the PATH"
        return Reason(f"there is no program `{program}`{where}", "Install it, or write the path that leads to it.")
    return Reason(f"`{program}` can't be run: {error.strerror or error}", "Check the `command`.")


def _shown(line: str) -> str:
    return repr(line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "...")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The errors that led to one, those in groups included."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            waiting += found.exceptions  # pyright: ignore[reportUnknownMemberType]


def _first_line(error: BaseException) -> str:
    """The first line of an error, or of the first error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    text = str(error).strip().splitlines()  # pyright: ignore[reportUnknownArgumentType]
    return text[0] if text else type(error).__name__  # pyright: ignore[reportUnknownArgumentType]
