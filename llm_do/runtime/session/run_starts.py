"""How runs start: the state of a new one, and another attempt at a durable one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do.runtime.call.code_step import run_code_step
from llm_do.runtime.call.invocation import call_by_name
from llm_do.runtime.context.budget import BudgetMeter
from llm_do.runtime.context.run_state import RunState
from llm_do.runtime.session.durable_runs import check_changes, earlier_run
from llm_do.runtime.session.entries import AgentEntry, Entry, entry_for, entry_input
from llm_do.runtime.session.execution import Durability, Execution, RunInputs
from llm_do.runtime.session.given_deps import check_deps, check_deps_again

if TYPE_CHECKING:
    from llm_do.project.project import Budget
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.events.subscription import Subscription
    from llm_do.runtime.record.results import RunResult
    from llm_do.runtime.steps.durable_run import InFlightAnswers

__all__ = ["new_run", "run_again"]


def new_run(
    session: Session,
    run_id: str,
    entry: Entry,
    *,
    thread_id: str | None = None,
    user_id: str | None = None,
    subscription: Subscription | None = None,
    budget: Budget | None = None,
    deps: object = None,
) -> RunState:
    """Create the state of a run; its budget is the session's unless it has one of its own.

    Raises:
        UsageError: It was given no dependencies, and its agent needs some, or some that no agent takes.
    """
    check_deps(entry, session.registry, deps)
    return RunState(
        run_id=run_id,
        call_by_name=call_by_name,
        run_code_step=run_code_step,
        budget=BudgetMeter(budget or session.config.settings.budget),
        root=session.project.root,
        subscriptions=[*session.shared.subscriptions, *([subscription] if subscription else [])],
        thread_id=thread_id,
        user_id=user_id,
        records_steps=isinstance(entry, AgentEntry),
        deps=deps,
    )


async def run_again(
    session: Session,
    run_id: str,
    *,
    in_flight: InFlightAnswers,
    accept_changes: bool,
    subscription: Subscription | None = None,
    budget: Budget | None = None,
    deps: object = None,
) -> RunResult:
    """Continue a durable run where it stopped, and return its result, however it ends.

    Raises:
        UsageError: There is no such run, or it is running or isn't durable, or the project has changed, or its
            dependencies are missing.
    """
    earlier = await earlier_run(session, run_id)
    if earlier.result is not None:
        return earlier.result
    beginning = earlier.beginning
    check_changes(session.project, earlier, accepts=accept_changes)
    check_deps_again(earlier, deps)
    history, project = earlier.history, session.project
    chosen = entry_for(project, session.registry, beginning.entry, history or [], beginning.active)
    run = new_run(
        session,
        run_id,
        chosen,
        thread_id=earlier.run.thread_id,
        user_id=earlier.run.user_id,
        subscription=subscription,
        budget=budget,
        deps=deps,
    )
    inputs = RunInputs(beginning.entry, history, earlier.toolkits, Durability(in_flight=in_flight))
    return await Execution(session, run, inputs).carry_out(chosen, await entry_input(chosen, beginning.input))
