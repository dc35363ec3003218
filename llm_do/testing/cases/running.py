"""Running one case: a workspace, the transport of its plan, `play`, and the expectations."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from llm_do._startup.frozen import frozen
from llm_do.concurrency.event_loops import run_blocking
from llm_do.errors import LlmDoError, ModelUnavailableError, ProviderError, ReplayError, UsageError
from llm_do.runtime.record.redaction import redact_data
from llm_do.runtime.record.results import Usage
from llm_do.testing.cases.expectations import Ran, check_run, miss_failure
from llm_do.testing.cases.offline_transport import OfflineTransport, is_scripted
from llm_do.testing.cases.remembered import store_of
from llm_do.testing.cases.replay_failures import replay_failure
from llm_do.testing.cases.results import CaseResult, CaseStatus, Failure, cost_note
from llm_do.testing.cases.workspace import Workspace, open_workspace
from llm_do.testing.cassettes.files import check_target, player_of, recorder_for
from llm_do.testing.cassettes.masks import PROJECT, Masks
from llm_do.testing.cassettes.player import CassettePlayer
from llm_do.testing.cassettes.recorder import CassetteRecorder, write_cassette
from llm_do.testing.judge import ask_judge
from llm_do.testing.playing import play_twice

if TYPE_CHECKING:
    from llm_do.testing.cases.case import Case, Plan

__all__ = ["CaseRun", "run_case"]

_Transport: TypeAlias = "CassettePlayer | CassetteRecorder | OfflineTransport | None"


@frozen
class CaseRun:
    """What came of a case, and what only the one who runs it has to know.

    Args:
        result: The result.
        misses: Whether a recording is missing, so that recording the case would help.
        recorded: How many requests were recorded.
        provider_failed: Whether a provider failed, so that nothing was recorded.
    """

    result: CaseResult
    misses: bool = False
    recorded: int = 0
    provider_failed: bool = False


@frozen
class _Attempt:
    """One repeat of a case."""

    status: CaseStatus
    failures: Sequence[Failure] = ()
    ran: Ran | None = None
    judging: Usage = Usage()
    misses: bool = False
    recorded: int = 0
    provider_failed: bool = False


def run_case(project: Path, case: Case, plan: Plan) -> CaseRun:
    """Run a case of a project, as often as the plan says.

    Args:
        project: The project's folder, manifest or `.agent` file.
        case: The case.
        plan: How it is run.

    Returns:
        What came of it. Nothing that the project does raises, except an interruption.
    """
    started = time.monotonic()
    live = plan.mode == "live"
    repeats = plan.repeats(case)
    attempts = [_guarded(project, case, plan) for _ in range(repeats)]
    passed = sum(each.status == "passed" for each in attempts)
    enough = passed >= repeats * (case.live.pass_rate if live else 1)
    shown = next((each for each in attempts if each.status != "passed"), attempts[-1])
    runs = [each.ran for each in attempts if each.ran is not None]
    usage = sum((each.ran.usage + each.judging for each in attempts if each.ran is not None), Usage())
    cost = usage.cost_usd if usage.cost_usd is not None or usage.total_tokens else 0.0
    result = CaseResult(
        id=case.id,
        name=case.name,
        file=case.file,
        line=case.line,
        column=plan.column.name,
        status="passed" if enough else shown.status,
        failures=() if enough else tuple(shown.failures),
        repeats=repeats,
        passed_repeats=passed,
        steps=sum(ran.steps for ran in runs),
        tool_calls=usage.tool_calls,
        usage=usage,
        cost=None if cost is None else Decimal(str(cost)),
        seconds=time.monotonic() - started,
        output=shown.ran.output if shown.ran is not None else None,
    )
    return CaseRun(
        CaseResult.from_dict(redact_data(result.to_dict())),  # a report is a file that others read
        any(each.misses for each in attempts),
        sum(each.recorded for each in attempts),
        any(each.provider_failed for each in attempts),
    )


def _guarded(project: Path, case: Case, plan: Plan) -> _Attempt:
    """One repeat; what can't even run is an error."""
    column = plan.column
    try:
        with open_workspace(project, copies=case.copies, agents=column.agents, env_file=plan.env_file) as workspace:
            return _attempt(project, case, plan, workspace)
    except LlmDoError as error:
        file = case.file if error.file is None else Path(error.file)
        line = case.line if error.file is None else error.line
        return _Attempt("error", [Failure(file, line, error.message, block=error.block, hint=error.hint)])
    except Exception as error:  # noqa: BLE001 (one case that can't run is no reason not to run the others)
        trace = "".join(traceback.format_exception(error)).rstrip()
        what = f"the test can't run: {type(error).__name__}: {error}"
        return _Attempt("error", [Failure(case.file, case.line, what.partition("\n")[0], block=trace)])


def _attempt(project: Path, case: Case, plan: Plan, workspace: Workspace) -> _Attempt:
    root = project if project.is_dir() else project.parent
    cassette = case.cassette(plan.column.name)
    try:
        transport = _transport(case, plan, workspace, root / cassette)
    except UsageError as error:
        what = error.message.replace(str(root / cassette), "the cassette")
        return _Attempt("failed", [Failure(cassette, error.line, what, hint=_record(plan))], misses=True)
    ran, difference = _run(case, plan, workspace, transport)
    judged = _Judged()
    failures = _misses(transport, plan)
    if not failures and difference is not None:
        failures = [replay_failure(case, workspace.project, difference)]
    elif not failures:
        failures = check_run(ran)
        if case.expect.judge is not None and not failures:
            judged = _judge(ran, transport)
            failures = _misses(transport, plan) or list(judged.failures)
        if isinstance(transport, CassettePlayer) and not failures:
            failures = _unasked(transport, cassette, plan)
    status: CaseStatus = "error" if judged.failed else "failed" if failures else "passed"
    missing = any(failure.last_time is not None for failure in failures)
    attempt = _Attempt(status, failures, ran, judged.usage, missing)
    if not isinstance(transport, CassetteRecorder):
        return attempt
    return _saved(attempt, ran, judged, transport, root / cassette)


def _transport(case: Case, plan: Plan, workspace: Workspace, cassette: Path) -> _Transport:
    """What carries the requests: nothing, if models are asked.

    Raises:
        UsageError: The cassette can't be read or written.
    """
    if plan.mode == "live":
        return None
    if plan.mode == "record":
        check_target(cassette)
        return recorder_for(workspace.project, case.ignore, case.recorded_tools)
    if plan.names_models or not os.path.lexists(cassette):
        return OfflineTransport()
    return player_of(cassette, workspace.project, again=plan.again, ignore=case.ignore, tools=case.recorded_tools)


def _run(case: Case, plan: Plan, workspace: Workspace, transport: _Transport) -> tuple[Ran, ReplayError | None]:
    """What a case did, and how its replay differed."""
    column, own = plan.column, workspace.project.settings.run_timeout
    started = time.monotonic()
    twice = play_twice(
        workspace.project,
        _here(case.inputs, workspace),
        approvals=case.approvals,
        entry=case.entry,
        thread_id=case.thread,
        user_id=case.user,
        store=store_of(case, workspace.project) if case.remembered else None,
        model=plan.model or column.model or case.model,
        models={**case.models, **column.models, **plan.models} or None,
        run_timeout=case.seconds if own is None else min(own, case.seconds),
        transport=transport,
        replays=workspace.link_again if plan.replays else None,
    )
    seconds = time.monotonic() - started
    is_free = isinstance(transport, OfflineTransport)
    return Ran(case, workspace, twice.played, seconds, is_free=is_free), twice.difference


def _here(inputs: list[object], workspace: Workspace) -> list[object]:
    """The inputs, with the project's folder where they say `<project>`."""
    text = json.dumps(inputs, ensure_ascii=False)
    return cast("list[object]", json.loads(Masks(workspace.root, str).here(text))) if PROJECT in text else inputs


def _misses(transport: _Transport, plan: Plan) -> list[Failure]:
    """The failure of a run that has ended because it has no answer to a request; what else is wrong follows from it."""
    if not isinstance(transport, CassettePlayer | OfflineTransport) or not transport.misses:
        return []
    error = transport.misses[0]
    if isinstance(transport, CassettePlayer):
        return [miss_failure(error, _record(plan, transport.recorded_usage), transport.recorded_usage)]
    if plan.names_models:
        hint = "Add `--live` to ask it, or name a `script:` or `test` model."
        return [Failure(what=f"a replay asks no provider: {error.message}", hint=hint)]
    return [Failure(what="it has no cassette", got=error.message, hint=_record(plan), last_time=Usage())]


def _record(plan: Plan, last_time: Usage | None = None) -> str:
    return f"Record it with `{plan.again}`{cost_note(last_time or Usage())}."


def _unasked(player: CassettePlayer, cassette: Path, plan: Plan) -> list[Failure]:
    """The failure of recordings that the run didn't ask for: what it did then isn't what it does now."""
    unused = player.unused
    if not unused:
        return []
    what = "1 recording was not asked for" if len(unused) == 1 else f"{len(unused)} recordings were not asked for"
    lines = [each.what for each in unused[:20]]
    more = [f"… {len(unused) - 20} more"] if len(unused) > 20 else []
    hint = _record(plan, player.recorded_usage)
    block = "\n".join([*lines, *more])
    return [Failure(cassette, None, what, block=block, hint=hint, last_time=player.recorded_usage)]


@frozen
class _Judged:
    """A judge's verdict on a run.

    Args:
        usage: What asking it has used.
        failures: The failure, if the statement isn't true or the judge has failed.
        failed: Whether it gave no answer.
        provider_failed: Whether that is its provider's fault.
    """

    usage: Usage = Usage()
    failures: Sequence[Failure] = ()
    failed: bool = False
    provider_failed: bool = False


def _judge(ran: Ran, transport: _Transport) -> _Judged:
    """Ask the judge, whose request goes where the run's requests went."""
    case, judge = ran.case, ran.case.expect.judge
    if judge is None:
        return _Judged()
    asked = partial(
        ask_judge,
        ran.workspace.project,
        judge.says,
        ran.played.result,
        input=case.inputs[-1],
        model=judge.model,
        transport=transport,
        env_file=ran.workspace.project.env_file,
    )
    judgement = run_blocking(asked)
    usage, error = judgement.result.usage, judgement.result.error
    if judgement.is_true:
        return _Judged(usage)
    failed = judgement.is_true is None
    what = f"the judge gave no answer: {judgement.reason}" if failed else "the judge says that it isn't true"
    got = None if failed else judgement.reason
    failure = Failure(case.file, case.line_of("judge", "says"), what, judge.says, got)
    return _Judged(usage, [failure], failed, isinstance(error, ProviderError | ModelUnavailableError))


def _saved(attempt: _Attempt, ran: Ran, judged: _Judged, recorder: CassetteRecorder, path: Path) -> _Attempt:
    """Write what was recorded, unless a provider failed: a cassette with half a run would only miss.

    It is written if expectations aren't met, too, which need no provider to be looked into.
    """
    statuses = {turn.status for turn in ran.turns} - {ran.case.expect.status}
    if judged.provider_failed:
        statuses.add("provider_failed")
    if "provider_failed" in statuses or "interrupted" in statuses:
        return replace(attempt, provider_failed="provider_failed" in statuses)
    cassette = recorder.cassette()
    if all(is_scripted(str(each.sent.setup["model"])) for each in cassette.exchanges):
        path.unlink(missing_ok=True)
        return attempt
    write_cassette(path, cassette)
    return replace(attempt, recorded=len(cassette.exchanges))
