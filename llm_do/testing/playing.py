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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, get_args

from llm_do.errors import UsageError
from llm_do.runtime.session.option_checks import warn_of_idle_patterns
from llm_do.runtime.session.run_options import EntryOptions, PlayOptions, check_options
from llm_do.testing.played_runs import Played, PlayedTwice, Question, tool_runs
from llm_do.text.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm_do.errors import ReplayError
    from llm_do.project.project import Project
    from llm_do.runtime.approval.broker import Answer, ApprovalDecision, ApprovalMode, ApprovalRequest
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.runtime import Runtime
    from llm_do.testing.cassettes.recorder import CassetteRecorder

__all__ = ["play", "play_twice"]

_OWN_OPTIONS = (
    "answers",
    "entry",
    "thread_id",
    "user_id",
    "cassette",
    "record_cassette",
    "ignore",
    "recorded_tools",
    "replay",
    "deps",
)


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
    replay: bool = False,
    deps: object = None,
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
        thread_id: The thread that the runs belong to. It is kept in memory unless `store` is set, and so is what agents
            remember.
        user_id: The user that the runs belong to.
        cassette: The file that recorded answers come from. No provider is asked, and a request that was not recorded
            ends the run with a `CassetteMissError`.
        record_cassette: Ask the models and write the cassette, instead of reading it.
        ignore: Regular expressions of text in requests that counts as equal, such as dates.
        recorded_tools: Names or patterns of tools whose results are in the cassette, too; None takes the project's
            `cassette.tools`.
        replay: Run durably, and replay each run at once, with no model and no tools: code that isn't the same twice
            raises `ReplayError`, since such a run can't be resumed. The project is loaded again for it, if its path is
            passed.
        deps: Dependencies for the agents that declare their type, such as a database with test data.

    Returns:
        What the run did. A run that ends early doesn't raise; check `status`.

    Raises:
        LinkError: The project doesn't link.
        InputError: The input doesn't fit.
        UsageError: `project` is something else, `approvals` has an invalid answer, or the cassette can't be read or
            written.
        ReplayError: With `replay`: the replay isn't what the run was; `difference` says what isn't the same.
        ValueError: A conversation has no inputs, `answers` are combined with `model` or `cassette`, or `replay` with
            `record_cassette` or `record`.
        TypeError: An option is unknown.

    Example:
        >>> play("examples/greeter", "Ann", answers=[{"text": "Hello, {input}!"}]).output
        'Hello, Ann!'
        >>> answers = [{"text": "Hello, {input}!"}, {"text": "Goodbye!"}]
        >>> [turn.output for turn in play("examples/greeter", ["Ann", "That's all."], answers=answers).turns]
        ['Hello, Ann!', 'Goodbye!']
    """
    check_options("play", options, ("approvals", *PlayOptions.__annotations__, *_OWN_OPTIONS))
    twice = play_twice(
        project,
        input,
        answers=answers,
        approvals=approvals,
        entry=entry,
        thread_id=thread_id,
        user_id=user_id,
        cassette=cassette,
        record_cassette=record_cassette,
        ignore=ignore,
        recorded_tools=recorded_tools,
        replays=(lambda: _linked(project, options.get("env_file"))) if replay else None,
        deps=deps,
        **options,
    )
    if twice.difference is not None:
        raise twice.difference
    return twice.played


def _linked(project: Project | str | os.PathLike[str], env_file: str | None) -> Project:
    from llm_do.project.project import Project

    if isinstance(project, Project):
        return project
    if not isinstance(cast("object", project), str | os.PathLike):
        raise UsageError(
            f"play takes a project or its path, not a value of type {type(project).__name__}",
            hint="An agent in code runs with `run.sync(spec, ..., model=...)`: its model may be a FunctionModel.",
        )
    return Project.load(Path(project), env_file=env_file)


def play_twice(
    project: Project | str | os.PathLike[str],
    input: object,
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
    replays: Callable[[], Project] | None = None,
    deps: object = None,
    **options: Unpack[PlayOptions],
) -> PlayedTwice:
    """Do what `play` does; `replays` links the project again for each replay, None replays nothing."""
    from llm_do.concurrency.event_loops import run_blocking
    from llm_do.runtime.runtime import Runtime

    _check_answers(approvals)
    if answers is not None and options.get("model") is not None:
        raise ValueError("pass answers or a model, not both")
    if cassette is not None and (answers is not None or options.get("transport") is not None):
        raise ValueError("a cassette has the answers: pass no others")
    if record_cassette and cassette is None:
        raise ValueError("pass the cassette to record")
    if replays is not None and (record_cassette or options.get("record") is False):
        what = "a cassette can't be recorded" if record_cassette else "`record` can't be False"
        raise ValueError(f"{what} in a run that is replayed: leave one of them out")
    is_conversation = isinstance(input, list | tuple)
    inputs: list[object] = list(cast("list[object]", input)) if is_conversation else [input]
    if not inputs:
        raise ValueError("a conversation needs at least one input")
    linked = _linked(project, options.get("env_file"))
    named = [("approvals", name) for name in approvals] if isinstance(approvals, Mapping) else []
    warn_of_idle_patterns([*named, *(("recorded_tools", name) for name in recorded_tools or ())], linked)
    approver = _Approver(approvals)
    has_state = thread_id is not None or user_id is not None
    if options.get("store") is None and (has_state or replays is not None or options.get("record") is not True):
        from llm_do.threads.opened_stores import memory_store

        options["store"] = memory_store()  # also for what agents remember in a run that isn't recorded
    elif isinstance(place := options.get("store"), str | Path):
        from llm_do.threads.opened_stores import open_store

        options["store"] = open_store(linked, place)
    with ExitStack() as stack:
        if answers is not None:
            options["model"] = f"script:{_script_path(answers, stack)}"
        recorder = None
        if cassette is not None:
            recorder = _use_cassette(options, Path(cassette), linked, ignore, recorded_tools, record=record_cassette)
        durable = replays is not None
        runtime = Runtime(linked, approvals=approver.mode or approver.answer, durable=durable, **options)
        turns, difference = run_blocking(
            partial(
                _run_turns,
                runtime,
                inputs,
                approver,
                partial(_again, approver, replays, options) if replays is not None else None,
                entry=entry,
                thread_id=thread_id,
                user_id=user_id,
                deps=deps,
            )
        )
        if recorder is not None and cassette is not None and turns[-1].status != "interrupted":
            from llm_do.testing.cassettes.recorder import write_cassette

            write_cassette(Path(cassette), recorder.cassette())
    if not is_conversation:
        return PlayedTwice(turns[0], difference)
    events = [event for each in turns for event in each.events]
    calls = [call for each in turns for call in each.calls]
    return PlayedTwice(Played(turns[-1].result, calls, approver.questions, events, turns), difference)


def _again(
    approver: _Approver, load: Callable[[], Project], options: PlayOptions, listener: Callable[[Event], object]
) -> Runtime:
    """The session of a replay."""
    from llm_do.runtime.runtime import Runtime

    runtime = Runtime(load(), approvals=approver.mode or approver.answer, durable=True, **options)
    runtime.on(None, listener)
    return runtime


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
    again: Callable[[Callable[[Event], object]], Runtime] | None,
    *,
    entry: str | None,
    thread_id: str | None,
    user_id: str | None,
    deps: object,
) -> tuple[list[Played], ReplayError | None]:
    """Run the inputs, each continuing the previous run, and close the runtime.

    With `again` each is replayed, until one differs.
    """
    turns: list[Played] = []
    difference: ReplayError | None = None
    events: list[Event] = []
    runtime.on(None, events.append)
    try:
        for value in inputs:
            previous = turns[-1].result.execution_context if turns and thread_id is None else None
            first_event, first_question = len(events), len(approver.questions)
            how: EntryOptions = {
                "entry": entry,
                "execution_context": previous,
                "thread_id": thread_id,
                "user_id": user_id,
                "deps": deps,
            }
            if again is None:
                result = await runtime.execute(value, **how)
            else:
                from llm_do.testing.rehearsals import rehearse

                store = runtime.config.store
                assert store is not None
                assert not isinstance(store, str | Path)
                rehearsed = await rehearse(runtime, partial(again, events.append), store, value, **how)
                result, difference = rehearsed.result, rehearsed.difference
            own_events = events[first_event:]
            turns.append(Played(result, tool_runs(own_events), approver.questions[first_question:], own_events))
            if difference is not None:
                break
    finally:
        await runtime.aclose()
    return turns, difference


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
            accepted = (*get_args(Answer), *(() if by_tool else get_args(ApprovalMode)))
            raise UsageError(
                f"{answer!r} is not an answer",
                hint=did_you_mean(answer, accepted) or f"Answers are {', '.join(accepted)}.",
            )


def _script_path(
    answers: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | os.PathLike[str], stack: ExitStack
) -> Path:
    if isinstance(answers, str | os.PathLike):
        return Path(answers).absolute()
    import json

    from llm_do.concurrency.temporary_folders import temporary_folder

    path = stack.enter_context(temporary_folder("answers")) / "answers.yaml"
    data: object = list(answers) if not isinstance(answers, Mapping) else answers
    if isinstance(data, Mapping) and "agents" not in data:
        data = {"agents": data}
    # JSON is valid YAML.
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path
