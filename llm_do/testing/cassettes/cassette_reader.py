"""Reads the text of a cassette, strictly: whatever isn't as a recorder writes it is refused with its line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.formats.server_listings import ListedTool
from llm_do.runtime.record.canonical_messages import canonical_text, chain, content_digest, message_data, ordered_part
from llm_do.runtime.record.exchanges import ModelFacts
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.sent_request import SETUP, SentRequest, request_key
from llm_do.testing.cassettes.cassette import VERSION, Cassette, Recorded
from llm_do.testing.cassettes.file_faults import (
    Field,
    FileFault,
    Path,
    checked_object,
    checked_value,
    json_of,
    raise_fault,
)
from llm_do.testing.cassettes.outcome_data import SPELLINGS, InvalidAnswerError, outcome_of
from llm_do.testing.cassettes.recorded_tools import ENDINGS, RecordedTool, answer_of
from llm_do.testing.cassettes.text_lines import LinesError, without_lines
from llm_do.text.words import with_count

__all__ = ["parse_cassette"]

_FILE = {
    "cassette": Field("any"),
    "made": Field("text"),
    "models": Field("object"),
    "agents": Field("object"),
    "exchanges": Field("list"),
    "servers": Field("object", required=False),
    "tools": Field("list", required=False),
}
_MODEL = {"system": Field("text"), "name": Field("text"), "profile": Field("object")}
_SETUP = {
    "model": Field("any"),
    "instructions": Field("text"),
    "tools": Field("list"),
    "output": Field("object"),
    "settings": Field("object"),
}
_EXCHANGE = {
    "call": Field("text"),
    "path": Field("text"),
    "request": Field("count", least=1),
    "agent": Field("text", required=False),
    "attempt": Field("count", required=False, least=1),
    "purpose": Field("text", required=False),
    "setup": Field("text", required=False),
    "kept": Field("count", required=False),
    "new": Field("list"),
    "usage": Field("object"),
    "response": Field("object", required=False),
    "failure": Field("object", required=False),
    "partial": Field("text", required=False),
}
_LISTED = {"name": Field("text"), "description": Field("any"), "schema": Field("object")}
_TOOL = {
    "call": Field("text"),
    "path": Field("text"),
    "tool": Field("text"),
    "tool_call": Field("text"),
    "args": Field("object"),
    "returned": Field("any", required=False),
    "content": Field("any", required=False),
    "failed": Field("object", required=False),
    "timed_out": Field("flag", required=False),
    "needs_approval": Field("object", required=False),
}
_FAILED = {"type": Field("name"), "message": Field("text"), "hint": Field("text", required=False)}
_MESSAGE = {"kind": Field("text"), "parts": Field("list")}
_USAGE = {
    "requests": Field("count", required=False),
    "tool_calls": Field("count", required=False),
    "input_tokens": Field("count", required=False),
    "output_tokens": Field("count", required=False),
    "total_tokens": Field("count", required=False),
    "cost_usd": Field("number", required=False),
}
_FAILURE = {
    "type": Field("text"),
    "message": Field("text"),
    "transient": Field("flag"),
    "model": Field("text", required=False),
    "status_code": Field("count", required=False),
    "body": Field("any", required=False),
    "retry_after": Field("number", required=False),
    "hint": Field("text", required=False),
    "suggested_model": Field("text", required=False),
    "members": Field("list", required=False),
}


def parse_cassette(text: str, file: str) -> Cassette:
    """The cassette of a file's text.

    Raises:
        UsageError: The text isn't that of a cassette of this version; the error says where.
    """
    text = text.removeprefix("\ufeff")
    data = json_of(text, file)
    if not isinstance(data, dict) or "cassette" not in data:
        raise UsageError(f"{file} is not a cassette", hint="Record one with `--record`.", file=file, line=1)
    version: object = cast("dict[str, Any]", data)["cassette"]
    if version != VERSION:
        raise UsageError(
            f"{file} is not a cassette of version {VERSION}: it says {json.dumps(version)}",
            hint="Record it again, or use the version of llm-do that recorded it.",
            file=file,
            line=1,
        )
    try:
        return _read(checked_object(without_lines(data), (), _FILE, "the cassette"))
    except FileFault as fault:
        raise_fault(fault, text, file)
    except LinesError as error:
        raise_fault(FileFault(str(error), error.path), text, file)


@frozen
class _History:
    """The messages of a call so far, and their digests."""

    messages: Sequence[Mapping[str, Any]] = ()
    digests: Sequence[str] = ("",)

    def extended(self, messages: Sequence[Mapping[str, Any]]) -> _History:
        digests = [*self.digests]
        for message in messages:
            digests.append(chain(digests[-1], content_digest(canonical_text(message))))
        return _History([*self.messages, *messages], digests)

    def cut(self, kept: int) -> _History:
        return _History(self.messages[:kept], self.digests[: kept + 1])


def _read(data: Mapping[str, Any]) -> Cassette:
    models = {
        name: ModelFacts(**checked_object(facts, ("models", name), _MODEL, f"the model `{name}`"))
        for name, facts in data["models"].items()
    }
    setups = {name: _setup(setup, ("agents", name)) for name, setup in data["agents"].items()}
    texts = {name: canonical_text(setup) for name, setup in setups.items()}
    histories: dict[tuple[str, str], _History] = {}
    exchanges: list[Recorded] = []
    for number, each in enumerate(data["exchanges"]):
        path: Path = ("exchanges", number)
        row = checked_object(each, path, _EXCHANGE, "the exchange")
        name = _known_setup(row, path, setups)
        purpose = row.get("purpose", "step")
        if purpose not in ("step", "summary"):
            raise FileFault(f"`purpose` has to be `step` or `summary`, not `{purpose}`", (*path, "purpose"))
        history = _history(row, path, histories.get((row["call"], purpose), _History()))
        outcome = _outcome(row, path)
        sent = SentRequest(
            setups[name], history.messages, request_key(texts[name], history.digests[-1]), history.digests[1:]
        )
        recorded = Recorded(
            row["call"],
            row["path"],
            row.get("agent", row["path"].rpartition("/")[2]),
            row["request"],
            row.get("attempt", 1),
            purpose,
            sent,
            outcome,
            row.get("partial", ""),
        )
        exchanges.append(recorded)
        answered = [] if outcome.response is None else [message_data(outcome.response, str, str)]
        histories[recorded.call, purpose] = history.extended(answered)
    tools = [_tool(each, ("tools", number)) for number, each in enumerate(data.get("tools", ()))]
    servers = {name: _server(name, listed) for name, listed in data.get("servers", {}).items()}
    return Cassette(exchanges, models, data["made"], tools, servers)


def _tool(data: object, path: Path) -> RecordedTool:
    row = checked_object(data, path, _TOOL, "the tool's result")
    ended = {name: value for name, value in row.items() if name in ENDINGS or name == "content"}
    if len([name for name in ended if name in ENDINGS]) != 1:
        raise FileFault(f"a tool's result has one of {', '.join(f'`{name}`' for name in ENDINGS)}", path)
    if "failed" in row:
        checked_object(row["failed"], (*path, "failed"), _FAILED, "the failure")
    if row.get("timed_out") is False:
        raise FileFault("`timed_out` can only be true", (*path, "timed_out"), "Write how the call ended instead.")
    if "returned" in row:
        try:
            answer_of(ended)
        except ValidationError as error:
            key = "content" if "content" in row else "returned"
            raise FileFault(f"`{key}` is nothing that a tool returns", (*path, key)) from error
    return RecordedTool(row["call"], row["path"], row["tool"], row["tool_call"], row["args"], ended)


def _server(name: str, data: object) -> Sequence[ListedTool]:
    path: Path = ("servers", name)
    listed = checked_value(data, path, Field("list"), name)
    return [
        ListedTool(**checked_object(each, (*path, number), _LISTED, "the tool"))
        for number, each in enumerate(cast("list[object]", listed))
    ]


def _known_setup(row: Mapping[str, Any], path: Path, setups: Mapping[str, Any]) -> str:
    key = next((key for key in ("setup", "agent") if key in row), "path")
    name = row[key].rpartition("/")[2] if key == "path" else row[key]
    if name not in setups:
        raise FileFault(f"`agents` has no `{name}`", (*path, key))
    return name


def _setup(data: object, path: Path) -> Mapping[str, Any]:
    setup = checked_object(data, path, _SETUP, f"the agent `{path[-1]}`")
    for number, tool in enumerate(setup["tools"]):
        checked_value(tool, (*path, "tools", number), Field("object"), "tool")
    return {name: setup[name] for name in SETUP}


def _history(row: Mapping[str, Any], path: Path, before: _History) -> _History:
    kept: int = row.get("kept", len(before.messages))
    if kept > len(before.messages):
        had = len(before.messages)
        raise FileFault(f"`kept` is {kept}, but the call had {with_count(had, 'message')} before", (*path, "kept"))
    return before.cut(kept).extended(
        [_message(message, (*path, "new", number)) for number, message in enumerate(row["new"])]
    )


def _message(data: object, path: Path) -> Mapping[str, Any]:
    message = checked_object(data, path, _MESSAGE, "the message")
    if message["kind"] not in ("request", "response"):
        raise FileFault(f"`kind` has to be `request` or `response`, not `{message['kind']}`", (*path, "kind"))
    parts = [_part(part, (*path, "parts", number)) for number, part in enumerate(message["parts"])]
    return {"kind": message["kind"], "parts": parts}


def _part(data: object, path: Path) -> dict[str, Any]:
    part = cast("Mapping[str, Any]", checked_value(data, path, Field("object"), "part"))
    if not isinstance(part.get("part_kind"), str):
        raise FileFault("`part_kind` is missing in the part", path)
    return ordered_part(part)


def _outcome(row: Mapping[str, Any], path: Path) -> RequestOutcome:
    if ("response" in row) == ("failure" in row):
        raise FileFault("an exchange has either a `response` or a `failure`", path)
    counted = checked_object(row["usage"], (*path, "usage"), _USAGE, "the usage")
    usage = Usage(**{"requests": 1, **counted})
    if "failure" in row:
        _check_failure(row["failure"], (*path, "failure"))
    else:
        response = row["response"]
        if not isinstance(response.get("parts"), list):
            raise FileFault("`parts` is missing in the response", (*path, "response"))
        for number, part in enumerate(response["parts"]):
            found = _part(part, (*path, "response", "parts", number))
            if "args_text" in found and found["args_text"] not in SPELLINGS:
                words = ", ".join(f"`{name}`" for name in SPELLINGS)
                where = (*path, "response", "parts", number, "args_text")
                raise FileFault(f"`args_text` has to be one of {words}", where)
    try:
        return outcome_of(usage, row)
    except InvalidAnswerError as error:
        raise FileFault(str(error), (*path, *error.path)) from error


def _check_failure(data: object, path: Path) -> None:
    failure = checked_object(data, path, _FAILURE, "the failure")
    for number, member in enumerate(failure.get("members", ())):
        _check_failure(member, (*path, "members", number))
