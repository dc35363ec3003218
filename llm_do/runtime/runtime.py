"""`Runtime`: runs the entries of one project. What its runs share is in `llm_do.runtime.session.project_session`.

One method performs runs, `execute`; `run`, `run_sync` and `stream` are views of it. Entries are in
`llm_do.runtime.session.entries`; which model an agent uses is decided in `llm_do.runtime.request.model_choice`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Unpack

from llm_do.concurrency.event_loops import require_event_loop, run_blocking
from llm_do.errors import UsageError
from llm_do.runtime.approval.question_answers import answer_question, pending_questions
from llm_do.runtime.record.events.event import Event, event_from_dict
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.histories import continue_history
from llm_do.runtime.record.recording import check_id
from llm_do.runtime.record.results import ExecutionContext, RunResult
from llm_do.runtime.record.run_stream import RunStream
from llm_do.runtime.record.store.following import follow_run
from llm_do.runtime.session.durable_runs import begin_run, earlier_run, find_run, project_as_begun
from llm_do.runtime.session.entries import Entry, entry_for, entry_input
from llm_do.runtime.session.execution import Durability, Execution, RunInputs
from llm_do.runtime.session.mapped_inputs import MAP_INPUTS, BatchBudget, check_inputs
from llm_do.runtime.session.project_session import ProjectSession
from llm_do.runtime.session.run_options import EntryOptions, check_options
from llm_do.runtime.session.run_starts import new_run, run_again
from llm_do.text.generated_ids import new_id

if TYPE_CHECKING:
    from llm_do.runtime.approval.broker import ApprovalDecision
    from llm_do.runtime.record.store.stored_questions import PendingQuestion
    from llm_do.runtime.steps.durable_run import InFlightAnswers

__all__ = ["Runtime"]


class Runtime(ProjectSession):
    """A session over one project: embed it in a script, a service or a notebook.

    Any number of runs may be active at once, in one event loop or several; they are isolated from each other. A
    person's answer "for this session" applies to all of them.

    Args:
        project: The project.
        config: The complete configuration, instead of options.
        options: The keys of `RuntimeOptions`, by name.

    Raises:
        UsageError: A pattern in `allow` or `deny`, a limit or `approvals` is invalid, or `config` is combined with
            options.

    Example:
        >>> project = Project.load("examples/greeter")
        >>> runtime = Runtime(project, approvals="approve_all", model="test")
        >>> runtime.run_sync("Hello").status
        'completed'
    """

    async def run(self, input: object = None, **options: Unpack[EntryOptions]) -> RunResult:
        """Run the project's entry.

        Args:
            input: Text, a mapping of the input model's fields, or an input model; None takes the entry's default.
            options: The keys of `EntryOptions`, by name.

        Returns:
            The result.

        Raises:
            InputError: The input or the conversation is invalid; nothing has run.
            RunError: The run ended early; the error carries the history so far.
        """
        result = await self.execute(input, **options)
        return result.raise_for_status()

    async def resume(
        self,
        run_id: str,
        *,
        in_flight: InFlightAnswers = None,
        accept_changes: bool = False,
        as_begun: bool = False,
        deps: object = None,
    ) -> RunResult:
        """Continue a durable run where it stopped: what has been done isn't done again.

        Args:
            run_id: The run.
            in_flight: What becomes of calls with effects that were running when it stopped: `repeat` runs them again,
                `fail` tells the model that whether they had an effect isn't known, `done` that they were carried out. A
                mapping says it by the keys of their steps, a function is asked. None leaves it to `answer`.
            accept_changes: Whether to continue although the project's files have changed; the run still stops, before
                anything new happens, at the first request that isn't what was sent before.
            as_begun: Whether to continue with the project's files as the run began with them, which are kept with it.
                Deny rules of the project as it is now hold too.
            deps: The run's dependencies again, which are never stored.

        Returns:
            The result; of a run that has ended, the one that it ended with.

        Raises:
            UsageError: There is no such run, it is running or isn't durable, the project has changed, or the run was
                given `deps` that are missing now.
            ReplayError: What the code does now isn't what it did before.
            SuspendedError: A person has to answer questions first.
            RunError: The run ended early.
        """
        result = await self.execute_again(
            run_id, in_flight=in_flight, accept_changes=accept_changes, as_begun=as_begun, deps=deps
        )
        return result.raise_for_status()

    def map(
        self,
        inputs: Iterable[object] | AsyncIterable[object],
        *,
        entry: str | None = None,
        concurrency: int | None = None,
        budget: BatchBudget | None = None,
        batch: str | None = None,
        retry: bool = False,
        accept_changes: bool = False,
        deps: object = None,
    ) -> AsyncIterator[RunResult]:
        """Run the project's entry on many inputs, each in a durable run of its own.

        Args:
            inputs: Texts, mappings of the input model's fields, or input models.
            entry: What to run instead of the project's entry, by name.
            concurrency: The number of runs at once; None for 20.
            budget: What the runs may cost, together and each.
            batch: The batch's id. The same inputs under the same id are continued where they were stopped, and those
                that have results aren't run again; None for a new batch.
            retry: Whether the inputs of an earlier call that have failed are run again.
            accept_changes: Whether to continue although the project's files or the models have changed.
            deps: Dependencies for the agents that declare their type, the same for all inputs.

        Returns:
            The results in the order of the inputs, each as soon as it and all before it are there, however it ended:
            see its `status`. Inputs whose runs wait for a person have the status `suspended`.

        Raises:
            UsageError: The batch was begun with other inputs, another entry or another project; or `inputs` is a single
                text or mapping.
            BudgetError: The budget lets no other input start; raised after the results that there are.
            RunInterruptedError: `interrupt` has ended the runs; raised after the results that there are.

        Example:
            >>> import asyncio
            >>> async def outputs(runtime):
            ...     return [result.output async for result in runtime.map(["one", "two"])]
            >>> runtime = Runtime(Project.load("examples/greeter"), model="test")
            >>> len(asyncio.run(outputs(runtime)))
            2
        """
        check_inputs(inputs)
        self._check_patterns()
        return MAP_INPUTS.get()(
            self,
            inputs,
            entry=entry,
            concurrency=concurrency,
            budget=budget,
            batch=batch,
            retry=retry,
            accept_changes=accept_changes,
            deps=deps,
        )

    async def pending(self, run_id: str | None = None) -> list[PendingQuestion]:
        """What durable runs need a person to answer: approvals, questions of agents, and calls that were running.

        Args:
            run_id: Only this run's questions.

        Returns:
            The questions, the oldest first.

        Raises:
            UsageError: There is no such run.
        """
        return await pending_questions(self.shared.recorder().store(), run_id)

    async def answer(
        self, question_id: str, answer: ApprovalDecision | str, *, by: str | None = None
    ) -> PendingQuestion:
        """Answer a question of a durable run, in whichever process it was asked; the first answer counts.

        Args:
            question_id: The id of the question.
            answer: A decision about a call, or its `answer`, where `allow` is `once`; text for a question of an agent;
                `repeat`, `done` or `fail` for a call that was running when its run stopped.
            by: Who answers; None for the user of this process.

        Returns:
            The question. `resume` continues the run, unless a process is waiting for the answer.

        Raises:
            UsageError: There is no such question, it can't be answered like this, it has been answered, or its run has
                ended.
        """
        return await answer_question(self.shared.recorder().store(), question_id, answer, by)

    def run_sync(self, input: object = None, **options: Unpack[EntryOptions]) -> RunResult:
        """Run the project's entry from synchronous code; works inside a running event loop too, such as a notebook's.

        Args:
            input: As for `run`.
            options: As for `run`.

        Returns:
            The result.
        """

        async def once() -> RunResult:
            try:
                return await self.run(input, **options)
            finally:
                await self.resources.aclose()
                await self.pool.aclose()

        return run_blocking(once)

    def stream(self, input: object = None, **options: Unpack[EntryOptions]) -> RunStream:
        """Run the project's entry and iterate over its events.

        Args:
            input: As for `run`.
            options: As for `run`.

        Returns:
            An async iterable of events; its `result` is set when the run has ended.

        Example:
            >>> async def watch(runtime):
            ...     async for event in runtime.stream("Hello"):
            ...         print(event.type)
        """
        return RunStream(lambda subscription: self.execute(input, **options, subscription=subscription))

    async def follow(self, run_id: str, *, after: int = -1) -> AsyncIterator[Event]:
        """Yield the events of a recorded run, whichever process runs it, until the run has ended.

        A durable run that was stopped, or waits for a person, hasn't ended: its further events come once it is resumed.
        Streamed text isn't recorded, so there are no `text` events.

        Args:
            run_id: The run.
            after: The number (`seq`) of the last event that is known already; -1 for all events.

        Raises:
            UsageError: There is no such run.

        Example:
            >>> async def watch(runtime, run_id):
            ...     async for event in runtime.follow(run_id):
            ...         print(event.seq, event.type)
        """
        async for each in follow_run(self.shared.recorder().store(), run_id, after=after):
            event = event_from_dict(each.data)
            if event is not None:  # or it is of another version
                yield event

    async def run_entry(self, entry: Entry, input: object = None) -> RunResult:
        """Run an entry object; equivalent to `run(input, entry=entry)`."""
        return await self.run(input, entry=entry)  # 0.3's name: see llm_do.compat

    async def execute(
        self,
        input: object = None,
        *,
        subscription: Subscription | None = None,
        **options: Unpack[EntryOptions],
    ) -> RunResult:
        """Perform a run and return its result, however the run ended: see its `status` and `error`.

        Args:
            input: As for `run`.
            subscription: Receives this run's events, in addition to the runtime's subscribers.
            options: As for `run`.

        Returns:
            The result. Only cancellation from outside is raised, after the run has been closed.

        Raises:
            InputError: The input or the conversation is invalid; nothing has run.
            UsageError: An id is empty, or asyncio isn't running.
        """
        require_event_loop()
        check_options("a run", options, EntryOptions.__annotations__)
        entry, messages = options.get("entry"), options.get("messages")
        execution_context = options.get("execution_context")
        thread_id, user_id = options.get("thread_id"), options.get("user_id")
        check_id("thread", thread_id)
        check_id("user", user_id)
        history = continue_history(messages, execution_context)
        before = execution_context or ExecutionContext()
        if entry is None or isinstance(entry, str):  # an entry that is passed may have tools that aren't registered
            self._check_patterns()
        run_id, deps = options.get("run_id"), options.get("deps")
        check_id("run", run_id)
        if run_id is not None and self.config.durable and await find_run(self, run_id) is not None:
            return await self.execute_again(run_id, subscription=subscription, deps=deps)
        chosen = entry_for(self.project, self.registry, entry, history, before.active_agent)
        value = await entry_input(chosen, self.project.entry.args if input is None and entry is None else input)
        run = new_run(
            self,
            run_id or new_id(),
            chosen,
            thread_id=thread_id,
            user_id=user_id,
            subscription=subscription,
            deps=deps,
        )
        continues = messages is not None or execution_context is not None
        given = history if continues else None
        durable = Durability(*await begin_run(self, entry, value, given, before, deps)) if self.config.durable else None
        inputs = RunInputs(entry, given, before.toolkits, durable)
        return await Execution(self, run, inputs).carry_out(chosen, value)

    async def execute_again(
        self,
        run_id: str,
        *,
        in_flight: InFlightAnswers = None,
        accept_changes: bool = False,
        as_begun: bool = False,
        subscription: Subscription | None = None,
        deps: object = None,
    ) -> RunResult:
        """Continue a durable run where it stopped, and return its result, however it ends.

        Args:
            run_id: The run.
            in_flight: What becomes of the calls that were running when it stopped, as for `resume`.
            accept_changes: Whether to continue although the project's files have changed.
            as_begun: Whether to continue with the project's files as the run began with them.
            subscription: Receives this run's events, in addition to the runtime's subscribers.
            deps: The run's dependencies again.

        Returns:
            The result; the recorded one of a run that has ended.

        Raises:
            UsageError: There is no such run, or it is running or isn't durable, or the project has changed, or its
                dependencies are missing.
        """
        require_event_loop()
        if as_begun and self.project.source is None:
            if accept_changes:
                raise UsageError(
                    "a run is continued with the files as they were or with the changed ones, not with both",
                    hint="Leave one of the two out.",
                )
            return await self._execute_as_begun(run_id, in_flight, subscription, deps)
        return await run_again(
            self,
            run_id,
            in_flight=in_flight,
            accept_changes=accept_changes or as_begun,
            subscription=subscription,
            deps=deps,
        )

    async def _execute_as_begun(
        self, run_id: str, in_flight: InFlightAnswers, subscription: Subscription | None, deps: object
    ) -> RunResult:
        """Continue a run in a session of its own, over the project as it was."""
        begun = Runtime(await project_as_begun(self, await earlier_run(self, run_id)), config=self.config)
        begun.shared.subscriptions = self.shared.subscriptions
        begun.running = self.running
        try:
            return await begun.execute_again(
                run_id, in_flight=in_flight, as_begun=True, subscription=subscription, deps=deps
            )
        finally:
            await begun.aclose()
