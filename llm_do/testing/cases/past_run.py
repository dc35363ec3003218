"""A test made of a run that has happened: its case as the text of a test file, and its cassette.

What the store kept is redacted already; the project's folder is taken out too, as a recorder does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml
from pydantic_ai.messages import BaseToolCallPart, BaseToolReturnPart

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.formats.case_file import case_slug
from llm_do.models.providers.model_names import split_name
from llm_do.runtime.record.events.run_events import RunFinishedEvent, RunStartedEvent
from llm_do.runtime.record.events.tool_events import ApprovalResolvedEvent, ToolCallEvent, ToolResultEvent
from llm_do.runtime.record.sent_request import SentRequest
from llm_do.testing.cases.calls import calls_of
from llm_do.testing.cases.offline_transport import is_scripted
from llm_do.testing.cassettes.call_readers import CallReaders
from llm_do.testing.cassettes.cassette import Cassette, Recorded
from llm_do.testing.cassettes.outcome_data import portable_outcome
from llm_do.text.generated_ids import short_run_id
from llm_do.text.output_text import output_text

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.record.exchanges import Exchange
    from llm_do.runtime.record.stored_records import RunRecord
    from llm_do.testing.cassettes.masks import Masks

__all__ = ["PastRun"]

_LONGEST_NAME = 60
_LONGEST_OUTPUT = 300


@frozen
class PastRun:
    """A recorded run.

    Args:
        record: What the store says of it.
        events: Its events, the project's folder taken out.
        exchanges: Its exchanges, in the order in which they ended.
    """

    record: RunRecord
    events: Sequence[Event]
    exchanges: Sequence[Exchange]

    def check(self) -> None:
        """Refuse a run that no test can be made of.

        Raises:
            UsageError: It hasn't ended, or it continued a conversation, which a test would have to repeat.
        """
        if self.record.finished is None:
            raise UsageError(f"the run {self.record.id} hasn't ended", hint="Wait for it, or choose another run.")
        first = next((each for each in self.exchanges if each.place.number == 1), None)
        roles = [message.get("kind") for message in first.sent.messages] if first is not None else []
        if len(roles) > 1:
            raise UsageError(
                f"the run {self.record.id} continued a conversation, whose other runs the test would need",
                hint="Choose the first run of its thread: see `llm-do runs list --thread ID`.",
            )

    @property
    def name(self) -> str:
        """A name for the case: the beginning of the run's input."""
        value = self._input()
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        words = line if len(line) <= _LONGEST_NAME else f"{line[:_LONGEST_NAME].rsplit(' ', 1)[0]}"
        return words.strip(" .!?") or f"run {self.record.id[:8]}"

    @property
    def slug(self) -> str:
        """The name of its test file, without the ending."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:40].strip("-")
        return plain or case_slug(self.name)

    @property
    def needs_cassette(self) -> bool:
        """Whether a model was asked that a test couldn't ask again."""
        return any(not is_scripted(str(each.sent.setup["model"])) for each in self.exchanges)

    def cassette(self, masks: Masks, version: str) -> Cassette:
        """Its exchanges as a cassette.

        Args:
            masks: Take the project's folder out.
            version: The version of llm-do.
        """
        readers = CallReaders(masks)
        for each in sorted(self.exchanges, key=lambda each: (each.place.number, each.place.attempt)):
            _number_tool_calls(each, readers)
        recorded: list[Recorded] = []
        for each in self.exchanges:
            place, reader = each.place, readers.of(each.place)
            outcome = portable_outcome(each.outcome, reader, masks.portable)
            setup, *messages = (_portable(data, masks) for data in (each.sent.setup, *each.sent.messages))
            sent = SentRequest.of(setup, messages)
            partial = cast("str", json.loads(masks.portable(json.dumps(each.partial, ensure_ascii=False))))
            call = readers.call(place)
            recorded.append(
                Recorded(
                    call, place.path, place.agent, place.number, place.attempt, place.purpose, sent, outcome, partial
                )
            )
        models = {str(each.sent.setup["model"]): each.facts for each in self.exchanges if each.facts is not None}
        day = datetime.now(UTC).date()
        return Cassette(
            sorted(recorded, key=lambda each: each.order),
            {_portable_text(name, masks): facts for name, facts in models.items()},
            f"{day} by llm-do {version}",
        )

    def case_text(self, project: Project, *, approve: bool) -> str:
        """Its case as the text of a test file.

        Args:
            project: The project.
            approve: Whether requests for approval are approved that no one was asked about then.
        """
        case: dict[str, Any] = {"name": self.name}
        if self.record.entry != project.entry.name:
            case["entry"] = self.record.entry
        case["input"] = self._input()
        case |= {"thread": self.record.thread_id} if self.record.thread_id is not None else {}
        case |= {"user": self.record.user_id} if self.record.user_id is not None else {}
        if models := self._models(project):
            case["models"] = models
        answer = dict(self._answers())
        if answer or approve:
            case["answer"] = answer or "once"
        case["expect"] = self._expectations()
        text = yaml.dump({"tests": [case]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
        return f"# Made of the run {short_run_id(self.record.id)}: say what matters of it, and remove the rest.\n{text}"

    def _input(self) -> Any:
        started = next((each for each in self.events if isinstance(each, RunStartedEvent)), None)
        value = started.input if started is not None else None
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, Any]", value)
            given = {name: each for name, each in fields.items() if each not in (None, [], {})}
            return given["input"] if set(given) == {"input"} else given
        return value

    def _models(self, project: Project) -> dict[str, str]:
        """The models of agents that the project's files don't name."""
        found: dict[str, str] = {}
        for each in self.exchanges:
            spec, model = project.registry.agent(each.place.agent), each.sent.setup["model"]
            own = spec.model or project.model if spec is not None else None
            if isinstance(model, str) and spec is not None and model != own and _in_project(model, project):
                found[each.place.agent] = model
        return found

    def _answers(self) -> Iterator[tuple[str, str]]:
        for each in self.events:
            if isinstance(each, ApprovalResolvedEvent) and each.by != "cancelled":
                yield each.tool_name, "once" if each.decision == "allow" else "deny"

    def _expectations(self) -> dict[str, Any]:
        expect: dict[str, Any] = {}
        if self.record.status != "completed":
            expect["status"] = self.record.status
        finished = next((each for each in self.events if isinstance(each, RunFinishedEvent)), None)
        if finished is not None and finished.output is not None:
            expect["output"] = _expected_output(finished.output)
        calls = calls_of([each for each in self.events if isinstance(each, ToolCallEvent | ToolResultEvent)])
        ran = [call.tool for call in calls if call.ran]
        denied = list(dict.fromkeys(call.tool for call in calls if call.status == "denied"))
        expect |= {"tools": ran} if ran else {}
        expect |= {"denied": denied} if denied else {}
        steps = sum(each.outcome.response is not None and each.place.purpose == "step" for each in self.exchanges)
        return expect | ({"at_most": {"steps": steps}} if steps else {})


def _in_project(model: str, project: Project) -> bool:
    """Whether a model that the command line named is the same for a test: a script may be in another folder."""
    provider, name = split_name(model)
    if provider != "script":
        return True
    file = (project.root / name).resolve()
    return not Path(name).is_absolute() and file.is_file() and file.is_relative_to(project.root.resolve())


def _expected_output(output: object) -> dict[str, Any]:
    """The output itself, or the first line of a long text."""
    if not isinstance(output, str):
        return {"equals": output}
    text = output_text(output)
    if len(text) <= _LONGEST_OUTPUT:
        return {"equals": text}
    return {"contains": next(line.strip() for line in text.splitlines() if line.strip())[:_LONGEST_OUTPUT]}


def _number_tool_calls(exchange: Exchange, readers: CallReaders) -> None:
    """Number the tool calls of an answer, whose ids its provider made up, as they were numbered then."""
    response = exchange.outcome.response
    for part in response.parts if response is not None else ():
        if isinstance(part, BaseToolCallPart | BaseToolReturnPart):
            readers.of(exchange.place).number(part.tool_call_id)


def _portable(data: Mapping[str, Any], masks: Masks) -> dict[str, Any]:
    return json.loads(masks.portable(json.dumps(data, ensure_ascii=False)))


def _portable_text(text: str, masks: Masks) -> str:
    return str(json.loads(masks.portable(json.dumps(text, ensure_ascii=False))))


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are, and indents the items of lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent, also where YAML could do without."""
        super().increase_indent(flow, indentless=False)


def _text(dumper: Any, text: str) -> Any:
    is_plain = "\n" in text and not any(line != line.rstrip() for line in text.splitlines())
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if is_plain else None)


_Dumper.add_representer(str, _text)
