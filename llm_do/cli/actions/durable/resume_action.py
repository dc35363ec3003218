"""What `llm-do resume` does: from the id of a durable run to its printed result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from llm_do._startup.frozen import frozen
from llm_do.cli.actions import failure
from llm_do.cli.actions.run_action import carry_out, link, prepare
from llm_do.cli.actions.run_output import print_end
from llm_do.cli.arguments.run_options import CommandOptions
from llm_do.cli.arguments.target import project_at
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.files.local_folder import FOLDER
from llm_do.project.store_location import is_own_file
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize

if TYPE_CHECKING:
    from llm_do.cli.actions.session import Session
    from llm_do.cli.arguments.run_options import InputOptions, OutputOptions, SessionOptions
    from llm_do.cli.process.signals import Interrupts
    from llm_do.cli.process.streams import Results
    from llm_do.project.project import Project
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.record.store.stored_questions import PendingQuestion
    from llm_do.runtime.session.durable_runs import EarlierRun
    from llm_do.runtime.session.run_options import RuntimeOptions
    from llm_do.runtime.steps.durable_run import InFlight
    from llm_do.ui.approval.asker import Asker

__all__ = ["ResumeOptions", "start"]

ANSWERS: Mapping[str, InFlight | None] = {
    "run it again": "repeat",
    "it was carried out: continue": "done",
    "tell the model that it isn't known": "fail",
    "answer later": None,
}


@frozen
class ResumeOptions:
    """Which run to continue, and how.

    Args:
        run: Its id or a prefix of it.
        in_flight: What becomes of calls that were running when it stopped; None asks, if a person is there.
        accept_changes: Whether to continue although the project's files have changed.
        as_begun: Whether to continue with the files that the run began with.
    """

    run: str
    in_flight: InFlight | None = None
    accept_changes: bool = False
    as_begun: bool = False


def start(what: ResumeOptions, target: InputOptions, session: SessionOptions, output: OutputOptions) -> int:
    """Continue a run and print its result.

    Raises:
        UsageError: The options exclude each other.
    """
    if what.accept_changes and what.as_begun:
        raise UsageError(
            "--accept-changes and --as-begun exclude each other: the files are the changed ones, or those from before",
            hint="Keep one of them.",
        )
    options = CommandOptions(target, {}, session, output)
    return carry_out(options, partial(_resume, what), owes_result=True)


def _resume(what: ResumeOptions, options: CommandOptions, results: Results, interrupts: Interrupts) -> int:
    prepare(otel=False)
    project = link(project_at(None, options.input.named), options, continues=True)
    from llm_do.cli.actions.session import Session

    if is_own_file(project.threads.store) and not (project.root / FOLDER / "state.db").exists():
        raise UsageError(
            f"nothing has been recorded in {project.root}",
            hint="`llm-do run --durable` begins a run that can be resumed.",
        )
    earlier, project = _find(project, what)
    session = Session(project, _as_begun(project, options.session, earlier), options.output, results, interrupts)
    interrupts.last_words = lambda: failure.print_last_words(
        options.output.output, results, interrupts.description, session.events_to_close
    )
    if earlier.result is None and options.output.verbosity >= 0:
        warn(sanitize(f"resuming run {short_run_id(earlier.run.id)} of {earlier.run.entry}"))
    started = time.monotonic()
    result = session.serve(lambda: _work(session, earlier, what))
    return print_end(result, options, session, results, interrupts, time.monotonic() - started, durable=True)


async def _work(session: Session, earlier: EarlierRun, what: ResumeOptions) -> RunResult:
    """Continue the run; a person who is there is asked about calls that were running."""
    accepts = what.accept_changes or what.as_begun  # with the latter, the project is that of the beginning
    ask = partial(_ask, session.asker) if session.asker is not None else None
    return await session.resume(earlier.run.id, what.in_flight or ask, accept_changes=accepts)


async def _ask(asker: Asker, question: PendingQuestion) -> InFlight | None:
    from llm_do.runtime.context.user_questions import NoAnswerError, UserQuestion

    text = (
        f"{question.agent_path}: {question.call} was running when the process stopped.\n"
        "Whether it had an effect isn't known. Find out, then choose:"
    )
    choices = [text for text, answer in ANSWERS.items() if answer is None or answer in question.answers]
    while True:
        try:
            answer = await asker.ask_user(UserQuestion(text, tuple(choices), "llm-do"), closed=True)
        except NoAnswerError:
            return None
        if answer in choices:
            return ANSWERS[answer]


def _find(project: Project, what: ResumeOptions) -> tuple[EarlierRun, Project]:
    """The run of an id or a prefix of it, read before the session is opened with its options, and its project."""
    import asyncio

    from llm_do.runtime.record.run_names import named_run
    from llm_do.runtime.runtime import Runtime
    from llm_do.runtime.session.durable_runs import earlier_run, project_as_begun

    async def find() -> tuple[EarlierRun, Project]:
        runtime = Runtime(project)
        try:
            store = runtime.shared.recorder().store()
            await store.recover()
            found = await earlier_run(runtime, (await named_run(store, what.run)).id)
            return found, await project_as_begun(runtime, found) if what.as_begun else project
        finally:
            await runtime.aclose()

    return asyncio.run(find())


def _as_begun(project: Project, session: SessionOptions, earlier: EarlierRun) -> SessionOptions:
    """The options of the session: those of the run's beginning, with the answers of this command line."""
    from dataclasses import replace

    from llm_do.runtime.session.durable_runs import options_as_begun

    begun: dict[str, Any] = dict(options_as_begun(project, earlier.beginning))
    everyone, agents, budget = begun.pop("model"), begun.pop("models"), begun.pop("budget")
    models = [everyone] if isinstance(everyone, str) else everyone or []
    models = [*models, *(f"{agent}={model}" for agent, model in agents.items())]
    return replace(
        session,
        shared=cast("RuntimeOptions", begun | {"durable": True}),
        models=tuple(models),
        budget_usd=budget.cost_usd,
    )
