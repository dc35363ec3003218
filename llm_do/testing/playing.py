"""Test a project: run it with scripted answers, and check what it did.

    from llm_do.testing import play

    def test_the_agent_multiplies_with_its_tool():
        played = play("..", "What is 17 times 23?", answers=[
            {"tools": [{"name": "multiply", "args": {"a": 17, "b": 23}}]},
            {"text": "17 times 23 is {tool}."},
        ])
        assert played.tools == ["multiply"]
        assert played.output == "17 times 23 is 391."

No provider is called and nothing leaves the machine; tools, approvals, limits and flows are real. A list of inputs is
a conversation; check its `turns` one by one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, get_args

from llm_do._startup.frozen import frozen
from llm_do.runtime.session.run_options import PlayOptions, check_options

if TYPE_CHECKING:
    from llm_do.project.project import Project
    from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalMode, ApprovalRequest
    from llm_do.runtime.record.events import Event
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.runtime import Runtime
    from llm_do.testing.cassettes.recorder import CassetteRecorder

__all__ = ["Played", "Question", "ToolRun", "play"]

_OWN_OPTIONS = ("answers", "entry", "thread_id", "user_id", "cassette", "record_cassette", "ignore", "recorded_tools")


@frozen
class ToolRun:
    """One tool call of a run.

    Args:
        tool: The tool's name, as the model knows it.
        args: The arguments.
        path: Call path of the agent that called it.
        status: `success`, `failed`, `denied`, `refused`, `timed_out` or `cancelled`.
        result: The result that the model received.
    """

    tool: str
    args: Mapping[str, Any]
    path: str
    status: str
    result: Any


@frozen
class Question:
    """A request for approval, and the answer that the test gave.

    Args:
        tool: The tool.
        args: Its arguments.
        path: Call path of the agent that called it.
        reason: Why the call needed approval.
        answer: The answer.
    """

    tool: str
    args: Mapping[str, Any]
    path: str
    reason: str
    answer: Answer


@frozen
class Played:
    """What a run or a conversation of several runs did.

    Args:
        result: The result of the run, however it ended, or of the last run of a conversation.
        calls: Its tool calls, in the order in which they ended.
        questions: Its requests for approval.
        events: All its events.
        turns: One for each input of a conversation; empty for a single run.
    """

    result: RunResult
    calls: list[ToolRun] = field(default_factory=list[ToolRun])
    questions: list[Question] = field(default_factory=list[Question])
    events: list[Event] = field(default_factory=list["Event"], repr=False)
    turns: list[Played] = field(default_factory=list["Played"], repr=False)

    @property
    def output(self) -> Any:
        """What the entry returned."""
        return self.result.output

    @property
    def status(self) -> str:
        """How the run ended: `completed`, `failed`, `denied`, ..."""
        return self.result.status

    @property
    def tools(self) -> list[str]:
        """The names of the called tools, including refused and denied calls."""
        return [call.tool for call in self.calls]

    @property
    def denied(self) -> list[str]:
        """The names of the tools whose calls were denied."""
        results = [turn.result for turn in self.turns] or [self.result]
        return [record.tool for result in results for record in result.denials]

    def call(self, tool: str) -> ToolRun:
        """Return the only call of a tool.

        Raises:
            AssertionError: There was no call, or more than one.
        """
        found = [call for call in self.calls if call.tool == tool]
        if len(found) != 1:
            raise AssertionError(f"{tool} was called {len(found)} times; calls: {', '.join(self.tools) or 'none'}")
        return found[0]


def play(
    project: Project | str | os.PathLike[str],
    input: object = None,
    *,
    answers: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    approvals: Mapping[str, Answer] | ApprovalMode | Answer = "once",
    entry: str | None = None,
    thread_id: str | None = None,
    user_id: str | None = None,
    cassette: str | os.PathLike[str] | None = None,
    record_cassette: bool = False,
    ignore: Sequence[str] = (),
    recorded_tools: Sequence[str] | None = None,
    **options: Unpack[PlayOptions],
) -> Played:
    """Run a project with scripted or recorded answers, once or turn by turn.

    Args:
        project: A project, or its path.
        input: The input; None uses the entry's default. A list is a conversation: each input continues the previous
            run.
        answers: The models' answers, turn by turn, as in a script file: a list, a mapping of agent names to lists, or
            the path of a file. In a conversation the list continues from one input to the next. With None every agent
            uses its own model.
        approvals: How requests for approval are answered: one answer for all (`once`, `all`, `session`, `always`,
            `deny`, `abort` or `unanswered`), or answers by tool name, where all other tools are denied. `prompt` is a
            run without a terminal, where no one can be asked.
        entry: The agent, flow or function to run instead of the project's entry.
        thread_id: The thread that the runs belong to. It is kept in memory unless `store` is set.
        user_id: The user that the runs belong to.
        cassette: The file that recorded answers come from. No provider is asked, and a request that was not recorded
            ends the run with a `CassetteMissError`.
        record_cassette: Ask the models and write the cassette, instead of reading it.
        ignore: Regular expressions of text in requests that counts as equal, such as dates.
        recorded_tools: Names or patterns of tools whose results are in the cassette, too; None takes the project's
            `cassette.tools`.

    Returns:
        What the run did. A run that ends early doesn't raise; check `status`.

    Raises:
        LinkError: The project doesn't link.
        InputError: The input doesn't fit.
        UsageError: The cassette can't be read or written.
        ValueError: `approvals` has an invalid answer, a conversation has no inputs, or `answers` are combined with
            `model` or `cassette`.
        TypeError: An option is unknown.

    Example:
        >>> play("examples/greeter", "Ann", answers=[{"text": "Hello, {input}!"}]).output
        'Hello, Ann!'
        >>> answers = [{"text": "Hello, {input}!"}, {"text": "Goodbye!"}]
        >>> [turn.output for turn in play("examples/greeter", ["Ann", "That's all."], answers=answers).turns]
        ['Hello, Ann!', 'Goodbye!']
    """
    from llm_do.concurrency.event_loops import run_blocking
    from llm_do.project.project import Project
    from llm_do.runtime.runtime import Runtime

    _check_answers(approvals)
    check_options("play", options, ("approvals", *PlayOptions.__annotations__, *_OWN_OPTIONS))
    if answers is not None and options.get("model") is not None:
        raise ValueError("pass answers or a model, not both")
    if cassette is not None and (answers is not None or options.get("transport") is not None):
        raise ValueError("a cassette has the answers: pass no others")
    if record_cassette and cassette is None:
        raise ValueError("pass the cassette to record")
    is_conversation = isinstance(input, list | tuple)
    inputs: list[object] = list(cast("list[object]", input)) if is_conversation else [input]
    if not inputs:
        raise ValueError("a conversation needs at least one input")
    linked = project if isinstance(project, Project) else Project.load(Path(project))
    approver = _Approver(approvals)
    if options.get("store") is None and (thread_id is not None or user_id is not None):
        from llm_do.threads.opened_stores import memory_store

        options["store"] = memory_store()
    with tempfile.TemporaryDirectory() as folder:
        if answers is not None:
            options["model"] = f"script:{_script_path(answers, Path(folder))}"
        recorder = None
        if cassette is not None:
            recorder = _use_cassette(options, Path(cassette), linked, ignore, recorded_tools, record=record_cassette)
        runtime = Runtime(linked, approvals=approver.mode or approver.answer, **options)
        begin = partial(_run_turns, runtime, inputs, approver, entry=entry, thread_id=thread_id, user_id=user_id)
        turns = run_blocking(begin)
        if recorder is not None and cassette is not None and turns[-1].status != "interrupted":
            from llm_do.testing.cassettes.recorder import write_cassette

            write_cassette(Path(cassette), recorder.cassette())
    if not is_conversation:
        return turns[0]
    events = [event for each in turns for event in each.events]
    return Played(turns[-1].result, [call for each in turns for call in each.calls], approver.questions, events, turns)


def _use_cassette(
    options: PlayOptions,
    path: Path,
    project: Project,
    ignore: Sequence[str],
    tools: Sequence[str] | None,
    *,
    record: bool,
) -> CassetteRecorder | None:
    """Set the transport that records or replays; return the recorder, if there is one."""
    from llm_do.testing.cassettes.files import check_target, player_of, recorder_for

    if not record:
        again = "play(..., record_cassette=True)"
        options["transport"] = player_of(path, project, again=again, ignore=ignore, tools=tools)
        return None
    check_target(path)
    options["transport"] = recorder = recorder_for(project, ignore, tools)
    return recorder


async def _run_turns(
    runtime: Runtime,
    inputs: Sequence[object],
    approver: _Approver,
    *,
    entry: str | None,
    thread_id: str | None,
    user_id: str | None,
) -> list[Played]:
    """Run the inputs, each continuing the previous run, and close the runtime."""
    turns: list[Played] = []
    events: list[Event] = []
    runtime.on(None, events.append)
    try:
        for value in inputs:
            previous = turns[-1].result.execution_context if turns and thread_id is None else None
            first_event, first_question = len(events), len(approver.questions)
            result = await runtime.execute(
                value, entry=entry, execution_context=previous, thread_id=thread_id, user_id=user_id
            )
            own_events = events[first_event:]
            turns.append(Played(result, _tool_runs(own_events), approver.questions[first_question:], own_events))
    finally:
        await runtime.aclose()
    return turns


class _Approver:
    """Answers requests for approval, all alike or by tool name."""

    def __init__(self, approvals: Mapping[str, Answer] | ApprovalMode | Answer) -> None:
        self.mode: ApprovalMode | None = None
        if not isinstance(approvals, Mapping) and (
            approvals == "approve_all" or approvals == "reject_all" or approvals == "prompt"
        ):
            self.mode = approvals
        self.questions: list[Question] = []
        self._approvals = approvals

    async def answer(self, request: ApprovalRequest) -> ApprovalDecision:
        from llm_do.runtime.approval.broker import ApprovalDecision

        answer: Any = self._approvals
        if isinstance(self._approvals, Mapping):
            answer = self._approvals.get(request.tool_name, "deny")
        self.questions.append(Question(request.tool_name, request.args, request.agent_path, request.reason, answer))
        return ApprovalDecision(answer)


def _check_answers(approvals: Mapping[str, Answer] | str) -> None:
    from llm_do.runtime.approval.broker import Answer, ApprovalMode

    by_tool = isinstance(approvals, Mapping)
    for answer in approvals.values() if isinstance(approvals, Mapping) else (approvals,):
        if answer not in get_args(Answer) and (by_tool or answer not in get_args(ApprovalMode)):
            raise ValueError(f"{answer!r} is not an answer; answers are {', '.join(get_args(Answer))}")


def _script_path(
    answers: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str], folder: Path
) -> Path:
    if isinstance(answers, str | os.PathLike):
        return Path(answers).absolute()
    import json

    path = folder / "answers.yaml"
    data: object = list(answers) if not isinstance(answers, Mapping) else answers
    if isinstance(data, Mapping) and "agents" not in data:
        data = {"agents": data}
    # JSON is valid YAML.
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path


def _tool_runs(events: Sequence[Event]) -> list[ToolRun]:
    import json

    from llm_do.runtime.record.events import ToolCallEvent, ToolResultEvent

    arguments: dict[tuple[str, str], Any] = {}
    finished: list[ToolRun] = []
    for event in events:
        if isinstance(event, ToolCallEvent):
            arguments[event.call_id, event.tool_call_id] = event.args
        elif isinstance(event, ToolResultEvent):
            args = arguments.get((event.call_id, event.tool_call_id), {}) if event.args is None else event.args
            if isinstance(args, str):
                try:
                    args = json.loads(args)
                except ValueError:
                    args = {"": args}
            finished.append(ToolRun(event.tool_name, args, event.path, event.status, event.result))
    return finished
