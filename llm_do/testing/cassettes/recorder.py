"""Records the requests of a session in a cassette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do.errors import LlmDoError, ToolError, UsageError
from llm_do.files.root import FileRefusedError, Root
from llm_do.formats.server_listings import ListedTool
from llm_do.runtime.record.exchanges import ModelFacts
from llm_do.runtime.record.sent_request import read_request
from llm_do.runtime.record.transport import Answer, Transport
from llm_do.testing.cassettes.call_readers import CallReaders
from llm_do.testing.cassettes.cassette import Cassette, Recorded
from llm_do.testing.cassettes.outcome_data import portable_outcome
from llm_do.testing.cassettes.recorded_tools import RecordedTool, raised_data, returned_data
from llm_do.text.globs import matches_any
from llm_do.text.json_data import to_json_data

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.transport import Ask, OutgoingRequest, ToolPlace
    from llm_do.testing.cassettes.masks import Masks

__all__ = ["CassetteRecorder", "write_cassette"]


class CassetteRecorder(Transport):
    """A transport that asks the models and records what was sent and what came back.

    Args:
        masks: Take secrets and what depends on the machine out of JSON text.
        version: The version of llm-do, for the cassette's first lines.
        tools: Names or patterns of tools whose results are recorded.
    """

    def __init__(self, masks: Masks, version: str, tools: Sequence[str] = ()) -> None:
        self._patterns = tools
        self._tools: list[RecordedTool] = []
        self._servers: dict[str, Sequence[ListedTool]] = {}
        self._masks = masks
        self._version = version
        self._readers = CallReaders(masks)
        self._exchanges: list[Recorded] = []
        self._models: dict[str, ModelFacts] = {}

    def stand_in(self, agent: str, named: Sequence[str] | None) -> Sequence[tuple[Model, str]]:
        """None: every agent uses its own model."""
        return ()

    async def send(
        self, place: RequestPlace, request: OutgoingRequest, ask: Ask, show: Callable[[str], None] | None
    ) -> Answer:
        """Ask the model, and record the exchange."""
        reader = self._readers.of(place)
        sent = read_request(reader, request)
        call = self._readers.call(place)
        answer = await ask()
        name = str(sent.setup["model"])
        if name not in self._models:
            self._models[name] = ModelFacts.of(request.model)
        outcome = portable_outcome(answer.outcome, reader, self._masks.portable)
        self._exchanges.append(
            Recorded(
                call,
                place.path,
                place.agent,
                place.number,
                place.attempt,
                place.purpose,
                sent,
                outcome,
                json.loads(self._masks.portable(json.dumps(answer.partial, ensure_ascii=False))),
            )
        )
        return answer

    def carries(self, tool: str) -> bool:
        """Whether a tool's results are recorded."""
        return matches_any(tool, self._patterns)

    async def call_tool(self, place: ToolPlace, args: Mapping[str, Any], run: Callable[[], Awaitable[Any]]) -> Any:
        """Run the tool, and record how it ended."""
        ended: Mapping[str, Any] = {}
        try:
            value = await run()
            ended = returned_data(value)
            return value
        except asyncio.CancelledError:
            ended = {"timed_out": True}
            raise
        except LlmDoError as error:
            ended = raised_data(error) if isinstance(error, ToolError) else {}
            raise
        except Exception as error:
            ended = raised_data(error)
            raise
        finally:
            if ended:
                self._keep(place, args, ended)

    def _keep(self, place: ToolPlace, args: Mapping[str, Any], ended: Mapping[str, Any]) -> None:
        data = {"args": to_json_data(dict(args)), "ended": ended}
        clean = json.loads(self._masks.portable(json.dumps(data, ensure_ascii=False)))
        number = self._readers.tool_call(place)
        call = self._readers.call(place)
        self._tools.append(RecordedTool(call, place.path, place.tool, number, clean["args"], clean["ended"]))

    def keep_listing(self, server: str, tools: Sequence[ListedTool], names: Collection[str]) -> None:
        """Record a server's tools if the results of some are recorded, so that it needn't be asked again."""
        if any(map(self.carries, names)):
            text = self._masks.portable(json.dumps([asdict(tool) for tool in tools], ensure_ascii=False))
            self._servers[server] = [ListedTool(**each) for each in json.loads(text)]

    def cassette(self) -> Cassette:
        """What has been recorded so far."""
        day = datetime.now(UTC).date()
        exchanges = sorted(self._exchanges, key=lambda each: each.order)
        made = f"{day} by llm-do {self._version}"
        return Cassette(exchanges, self._models, made, list(self._tools), dict(self._servers))


def write_cassette(path: Path, cassette: Cassette) -> None:
    """Write a cassette in one step: whoever is killed while recording keeps the old one.

    Raises:
        UsageError: The file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Root(path.parent).write(path.name, cassette.to_text().encode("utf-8", "backslashreplace"))
    except (FileRefusedError, OSError) as error:
        raise UsageError(
            f"the cassette {path} can't be written: {error}", hint="Choose another file.", file=str(path)
        ) from error
