"""`InputRuns`: carries out the runs of a batch's inputs, one at a time each, for `map` and workers alike.

Which inputs a process gets is decided by `ClaimQueue` or `Worker`; how one run is carried out, by the runtime.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do.concurrency.large_values import json_data
from llm_do.errors import (
    InputError,
    ReplayError,
    RunInterruptedError,
    RunTakenError,
    StoreError,
    UsageError,
)
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import ErrorRecord, RunResult
from llm_do.runtime.record.store.batches import BatchItem, ClaimedInput
from llm_do.runtime.session.entries import entry_for, entry_input
from llm_do.runtime.session.execution import Durability, Execution, RunInputs
from llm_do.runtime.session.given_deps import check_deps
from llm_do.runtime.session.project_snapshots import take_snapshot
from llm_do.runtime.session.run_starts import new_run, run_again
from llm_do.runtime.steps.run_beginning import RunBeginning
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.runtime.steps.stored_results import result_text

if TYPE_CHECKING:
    from llm_do.project.project import Budget
    from llm_do.runtime.context.session import Session
    from llm_do.runtime.record.store.batches import BatchRecord, BatchStore
    from llm_do.runtime.steps.durable_run import InFlight

__all__ = ["UNENDED", "InputRuns", "denial", "failure_of"]

UNENDED = frozenset({"queued", "running", "stopped", "suspended"})
"""The states of runs that haven't ended."""


class InputRuns:
    """The runs of one batch, as this process carries them out.

    Args:
        session: The session whose runs these are.
        store: Where the batch is.
        batch: The batch.
        in_flight: What becomes of calls with effects that were running when a run was stopped.
        accept_changes: Whether stopped runs continue although the project's files have changed.
        deps: The dependencies that each run is given.

    Raises:
        UsageError: What is run needs dependencies, and there are none.
    """

    def __init__(
        self,
        session: Session,
        store: BatchStore,
        batch: BatchRecord,
        *,
        in_flight: InFlight | None = None,
        accept_changes: bool = False,
        deps: object = None,
    ) -> None:
        self.batch = batch
        self._session = session
        self._store = store
        self._in_flight: InFlight | None = in_flight
        self._accept_changes = accept_changes
        self._deps = deps
        self._entry = entry_for(session.project, session.registry, batch.entry, [], None)
        check_deps(self._entry, session.registry, deps)
        self._seal = Seal(redactor().secrets)
        self._snapshot = take_snapshot(session.project, redactor().secrets)
        self._beginning = RunBeginning(
            batch.entry,
            None,
            options=session.config.kept_options,
            project=self._snapshot.digests,
            unkept=self._snapshot.unkept,
            version=_version(),
            deps=None if deps is None else type(deps).__qualname__,
        )

    async def carry_out(self, work: ClaimedInput | BatchItem) -> RunResult | None:
        """Begin the run of a claimed input, or continue one that was stopped.

        Returns:
            Its result, also where it waits for a person; None if another process has the run now.

        Raises:
            RunInterruptedError: The session was interrupted, and the run is left to be resumed.
            StoreError: The store can't be read or written.
        """
        return await (self._begin(work) if isinstance(work, ClaimedInput) else self._continue(work))

    async def _begin(self, claim: ClaimedInput) -> RunResult | None:
        try:
            value = await entry_input(self._entry, json.loads(self._seal.open(claim.data)))
        except InputError as error:
            return await self._end(claim.run_id, error, "invalid")
        beginning = await replace(self._beginning, input=await json_data(value)).sealed(self._seal)
        run = new_run(self._session, claim.run_id, self._entry, budget=self._budget, deps=self._deps)
        inputs = RunInputs(self.batch.entry, None, {}, Durability(beginning, self._snapshot.row))
        try:
            result = await Execution(self._session, run, inputs).carry_out(self._entry, value)
        except UsageError:
            if await self._store.has_claimed(claim.run_id):
                raise
            return None  # the process counted as dead for a moment, and its claims were put on the queue again
        return await self._settle(claim.ordinal, result)

    async def _continue(self, item: BatchItem) -> RunResult | None:
        try:
            result = await run_again(
                self._session,
                item.run_id,
                in_flight=self._in_flight,
                accept_changes=self._accept_changes,
                budget=self._budget,
                deps=self._deps,
            )
        except ReplayError as error:  # a secret has changed
            return await self._end(item.run_id, error, error.status)
        except UsageError:
            found = await self._item(item.ordinal)
            if found.status in ("stopped", "suspended") and found.attempt == item.attempt:
                raise
            return None  # another process was faster, and may have been stopped again meanwhile
        return await self._settle(item.ordinal, result)

    async def _settle(self, ordinal: int, result: RunResult) -> RunResult | None:
        """What has come of an attempt: one that has stopped without an end may have no result."""
        error = result.error
        if not isinstance(error, StoreError | ReplayError | RunInterruptedError):
            return result
        status = (await self._item(ordinal)).status
        if status not in UNENDED:
            return result
        if isinstance(error, RunTakenError):
            return None  # another process has it, and its result will be in the store
        if isinstance(error, StoreError | RunInterruptedError):
            raise error
        return await self._end(result.run_id, error, error.status) if status == "stopped" else None

    async def _end(self, run_id: str, error: Exception, status: str) -> RunResult:
        """End a run that can't be carried out."""
        result = RunResult(status=status, output=None, run_id=run_id, error=error)  # type: ignore[arg-type]
        await self._store.end(run_id, status, self._seal.close(result_text(result)))
        return result

    async def _item(self, ordinal: int) -> BatchItem:
        (found,) = await self._store.items(self.batch.id, after=ordinal - 1, most=1, results=False)
        return found

    @property
    def _budget(self) -> Budget:
        """What one run may use."""
        budget, each = self._session.config.settings.budget, self.batch.budget_each
        if each is None:
            return budget
        return replace(budget, cost_usd=each if budget.cost_usd is None else min(each, budget.cost_usd))


def failure_of(result: RunResult) -> ErrorRecord:
    """Why a run didn't complete, also where nothing was raised."""
    if result.error is not None:
        return ErrorRecord.of(result.error)
    return denial(result.status, [each.reason for each in result.denials])


def denial(status: str, reasons: Sequence[str]) -> ErrorRecord:
    """Why a run didn't complete that raised nothing: a call was denied for lack of a person."""
    return ErrorRecord("PermissionDeniedError", reasons[0] if reasons else f"the run ended as {status}")


def _version() -> str:
    from importlib.metadata import version

    return version("llm-do")
