"""Why a cassette has no answer for a request: what has changed since it was recorded, and where that is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.errors import CassetteMissError
from llm_do.runtime.request.request_differences import RequestDifference, RequestPart, request_differences
from llm_do.text.text_diff import text_diff
from llm_do.text.words import place_text

if TYPE_CHECKING:
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.sent_request import SentRequest
    from llm_do.testing.cassettes.cassette import Recorded
    from llm_do.testing.cassettes.recorded_tools import RecordedTool
    from llm_do.testing.cassettes.sources import Place, Sources

__all__ = ["Difference", "describe_differences", "explain_miss", "explain_missing_result"]


@frozen
class Difference:
    """One part of a request that is not as it was recorded.

    Args:
        what: A predicate's subject and verb, such as `reviewer's instructions have changed`.
        before: The recorded part; None if it was added.
        after: The part now; None if it was removed.
        file: Where it is written.
        line: The line in that file.
        names: What was before and what is now, above a diff.
    """

    what: str
    before: Any
    after: Any
    file: str | None = None
    line: int | None = None
    names: tuple[str, str] = ("recorded", "now")

    @property
    def place(self) -> str:
        """Where it is written, in parentheses; empty if that isn't known."""
        return place_text(self.file, self.line)

    @property
    def block(self) -> str:
        """The difference as a diff."""
        return "\n".join(text_diff(self.before, self.after, *self.names))


def explain_miss(
    recorded: Sequence[Recorded],
    used: Collection[int],
    call: str,
    place: RequestPlace,
    sent: SentRequest,
    sources: Sources,
) -> CassetteMissError:
    """The error for a request that has no answer."""
    request = f"request {place.number} of {place.path}"
    if place.purpose != "step":
        request = f"the {place.purpose} before {request}"
    compared = _closest(recorded, used, call, place)
    if compared is None:
        return CassetteMissError(
            f"the cassette has no answer for {request}: no request of {place.agent} was recorded",
            agent_path=place.path,
        )
    if compared.sent.key == sent.key:
        return CassetteMissError(
            f"the cassette has no answer for {request}: it was recorded fewer times than it is made now",
            agent_path=place.path,
        )
    found = describe_differences(compared.sent, sent, place.agent, sources)
    first = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return CassetteMissError(
        f"the cassette has no answer for {request}: {first.what} since the recording{first.place}{more}",
        file=first.file,
        line=first.line,
        agent_path=place.path,
        block="\n".join(
            [first.block, *(f"{each.what}{each.place}\n{each.block}" for each in found[1:])],
        ),
    )


def explain_missing_result(
    recorded: Sequence[RecordedTool], asked: RecordedTool, sources: Sources
) -> CassetteMissError:
    """The error for a tool call whose result isn't recorded."""
    file, line = sources.tool(asked.tool)
    place = f" ({file}:{line})" if file is not None else ""
    found = f"the cassette has no result of {asked.tool}{place} for {asked.path}"
    of_tool = [each for each in recorded if each.tool == asked.tool and each.path == asked.path]
    if not of_tool:
        return CassetteMissError(
            f"{found}: none was recorded",
            hint=f"`cassette.tools` has named {asked.tool} only since the recording, or the tool was denied then.",
            agent_path=asked.path,
            file=file,
            line=line,
        )
    if any(each.key == asked.key for each in of_tool):
        what = "it was called fewer times with these arguments"
        return CassetteMissError(f"{found}: {what}", agent_path=asked.path, file=file, line=line)
    same = next((each for each in of_tool if each.tool_call == asked.tool_call), of_tool[0])
    difference = Difference("its arguments", dict(same.args), dict(asked.args))
    return CassetteMissError(
        f"{found}: its arguments have changed since the recording",
        agent_path=asked.path,
        file=file,
        line=line,
        block=difference.block,
    )


def _closest(recorded: Sequence[Recorded], used: Collection[int], call: str, place: RequestPlace) -> Recorded | None:
    """The recording that a request is compared with: the one at its place, if there is one."""
    same = [
        (number in used, each)
        for number, each in enumerate(recorded)
        if each.purpose == place.purpose and each.agent == place.agent
    ]
    tests: Iterable[Callable[[Recorded], bool]] = (
        lambda each: each.call == call and each.number == place.number,
        lambda each: each.path == place.path and each.number == place.number,
        lambda each: each.path == place.path,
        lambda _: True,
    )
    for test in tests:
        fitting = [(was_used, each) for was_used, each in same if test(each)]
        if fitting:
            return next((each for was_used, each in fitting if not was_used), fitting[-1][1])
    return None


def describe_differences(
    before: SentRequest,
    after: SentRequest,
    agent: str,
    sources: Sources,
    names: tuple[str, str] = ("recorded", "now"),
) -> list[Difference]:
    """What differs between two requests of an agent, what is written in files first; `names` are those of the two."""
    return [
        Difference(_words(found, agent), found.before, found.after, *_place(found, agent, sources), names=names)
        for found in request_differences(before, after)
    ]


_WORDS: Mapping[RequestPart, str] = {
    "model": "{agent}'s model has changed",
    "instructions": "{agent}'s instructions have changed",
    "output": "{agent}'s output schema has changed",
    "tools": "the order of {agent}'s tools has changed",
    "setting": "{agent}'s setting {name} has changed",
    "input": "the input of {agent} has changed",
    "prompt": "a later prompt of {agent} has changed",
    "result": "the result of {name} is not what it was",
    "conversation": "the conversation of {agent} has changed",
}
"""What has happened to a part of an agent's requests."""


def _words(found: RequestDifference, agent: str) -> str:
    if found.part == "length":
        return f"the conversation of {agent} is {'shorter' if found.after is None else 'longer'} than it was"
    if found.part != "tool":
        return _WORDS[found.part].format(agent=agent, name=found.name)
    if found.before is None:
        return f"{agent} has the tool {found.name}, which it didn't have,"
    if found.after is None:
        return f"{agent} no longer has the tool {found.name}, which it had,"
    changed = found.before.get("description") != found.after.get("description")
    return f"the {'description' if changed else 'schema'} of the tool {found.name} has changed"


def _place(found: RequestDifference, agent: str, sources: Sources) -> Place:
    """Where a part of an agent's requests is written; nowhere for what a run brings."""
    match found.part:
        case "model":
            return sources.setting(agent, "model")
        case "output":
            return sources.output(agent)
        case "instructions":
            return sources.text(agent, found.before, found.after)
        case "setting":
            return sources.setting(agent, found.name)
        case "tool":
            place = sources.tool(found.name) if found.before and found.after else (None, None)
            return place if place[0] is not None else sources.agent(agent)
        case "tools":
            return sources.agent(agent)
        case "result":
            place = sources.result(found.args, found.before, found.after)
            return place if place[0] is not None else sources.tool(found.name)
        case _:
            return None, None
