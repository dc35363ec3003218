"""The readers of a session's calls, and ids of calls that are the same in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from llm_do.runtime.record.sent_request import RequestReader

if TYPE_CHECKING:
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.transport import ToolPlace

__all__ = ["CallReaders"]


class CallReaders:
    """A reader for each call of a session's runs.

    Args:
        clean: Takes secrets and what depends on the machine out of JSON text.
    """

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._readers: dict[tuple[str, str], RequestReader] = {}
        self._runs: dict[str, int] = {}

    def of(self, place: RequestPlace) -> RequestReader:
        """The reader of a request's call."""
        return self._readers.setdefault((place.call_id, place.purpose), RequestReader(self._clean))

    def tool_call(self, place: ToolPlace) -> str:
        """The number of a tool call in its call; a replayed answer has it already."""
        reader = self._readers.get((place.call_id, "step"))
        known = reader is not None and place.tool_call_id in reader.tool_call_ids
        return reader.number(place.tool_call_id) if reader is not None and known else place.tool_call_id

    def call(self, place: RequestPlace | ToolPlace) -> str:
        """The id of a request's or a tool's call without that of its run, and with tool calls numbered.

        A provider makes up the ids of tool calls, and an agent that is called as a tool has one in its call id. The
        runs after a session's first have their number in front.
        """
        run = self._runs.setdefault(place.run_id, len(self._runs) + 1)
        parent, rest = place.run_id, place.call
        words: list[str] = []
        while rest:
            reader = self._readers.get((parent, "step"))
            known = self._leading_tool_call(reader, rest)
            end = rest.find(".", len(known))
            word, rest = (rest, "") if end < 0 else (rest[:end], rest[end + 1 :])
            words.append(reader.number(known) + word[len(known) :] if reader is not None and known else word)
            parent = f"{parent}.{word}"
        call = ".".join(words)
        return call if run == 1 else f"{run}:{call}"

    @staticmethod
    def _leading_tool_call(reader: RequestReader | None, rest: str) -> str:
        """The tool call id that the rest of a call id begins with, which may contain dots itself."""
        known = reader.tool_call_ids if reader is not None else ()
        found = max((each for each in known if rest.startswith(each)), key=len, default="")
        return found if rest[len(found) : len(found) + 1] in ("", ".", "-", "#") else ""
