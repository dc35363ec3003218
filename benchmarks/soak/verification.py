"""What must be true of a store after a soak, with a count for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart, UserPromptPart

from benchmarks.soak.clients import Accepted
from benchmarks.soak.soaked_project import expected
from llm_do.errors import EXIT_CODES
from llm_do.runtime.record.stored_records import Filter, RunRecord, StoredMessage
from llm_do.threads import ConversationManager
from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["Verdict", "verify"]

UNSURE = "whether it had an effect isn't known"
"""What a model is told of a call that was in flight at a kill, and repeats."""

ENDINGS = ("run_finished", "run_failed")


@dataclass
class Verdict:
    """What was counted, and what was wrong."""

    counts: dict[str, int | str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def expect(self, name: str, wrong: Sequence[object], of: int) -> None:
        """Note how many there are, and which are wrong."""
        self.counts[name] = f"{len(wrong)} of {of}"
        if wrong:
            self.faults.append(f"{name}: {len(wrong)} of {of}, such as {list(wrong[:3])}")


async def verify(store: SqlStore, accepted: Sequence[Accepted], effects: Mapping[str, int]) -> Verdict:
    """Compare what was accepted, what happened, and what is in the store."""
    verdict = Verdict()
    await store.recover()
    runs = {run.id: run for run in await store.runs()}
    verdict.counts["inputs accepted"] = len(accepted)
    verdict.counts["runs in the store"] = len(runs)
    verdict.counts["runs by status"] = _listed(Counter(run.status for run in runs.values()))
    verdict.counts["effects"] = sum(effects.values())
    verdict.expect("effects repeated", [word for word, count in effects.items() if count > 1], len(effects))
    words = {one.word for one in accepted}
    verdict.expect("effects of no input", [word for word in effects if word not in words], len(effects))
    _check_outcomes(verdict, accepted, effects, runs)
    await _check_journals(verdict, store, runs)
    await _check_threads(verdict, store, accepted, runs)
    return verdict


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _check_outcomes(
    verdict: Verdict, accepted: Sequence[Accepted], effects: Mapping[str, int], runs: Mapping[str, RunRecord]
) -> None:
    known = [one for one in accepted if one.run_id is not None]
    verdict.counts["inputs by status"] = _listed(Counter(one.status or "unknown (killed)" for one in accepted))
    lost = [one for one in known if one.run_id not in runs]
    verdict.expect("accepted inputs without a run", lost, len(known))
    other = [one for one in known if one.run_id in runs and one.status != runs[one.run_id].status]
    verdict.expect("inputs whose client was told another outcome", other, len(known))
    still = [run.id for run in runs.values() if run.status not in EXIT_CODES or run.status == "suspended"]
    verdict.expect("runs without an outcome", still, len(runs))
    completed = [one for one in accepted if one.status == "completed"]
    outputs = [one for one in completed if one.output is not None]
    told = [one for one in outputs if UNSURE in str(one.output)]
    verdict.counts["calls in flight at a kill, told to the model"] = len(told)
    verdict.expect(
        "wrong outputs", [o for o in outputs if o not in told and o.output != expected(o.word)], len(outputs)
    )
    # Whether a call that was in flight had its effect is what isn't known.
    no_effect = [one for one in completed if one not in told and not effects.get(one.word)]
    verdict.expect("completed inputs without their effect", no_effect, len(completed))
    failing = [one for one in accepted if expected(one.word) is None]
    verdict.expect("effects of inputs that fail before them", [o for o in failing if effects.get(o.word)], len(failing))


async def _check_journals(verdict: Verdict, store: SqlStore, runs: Mapping[str, RunRecord]) -> None:
    """Each run has told once how it ended, and the numbers of its events have no holes."""
    endings: list[str] = []
    holes: list[str] = []
    events = 0
    for id in runs:
        found = await store.observations(Filter(run_id=id))
        events += len(found)
        if sum(each.type in ENDINGS for each in found) != 1:
            endings.append(f"{id} ({runs[id].status}): {[each.type for each in found][-4:]}")
        numbers = [each.seq for each in found]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else []):
            holes.append(f"{id}: {numbers[:20]}")
    verdict.counts["events"] = events
    verdict.expect("runs with no ending, or several", endings, len(runs))
    verdict.expect("journals with a hole", holes, len(runs))


async def _check_threads(
    verdict: Verdict, store: SqlStore, accepted: Sequence[Accepted], runs: Mapping[str, RunRecord]
) -> None:
    """Each history has every completed turn once and in order, and a result for each call."""
    threads = await store.threads(every_user=True)
    orphans: list[str] = []
    repeated: list[str] = []
    missing: list[str] = []
    disordered: list[str] = []
    strange: list[str] = []
    turns = 0
    for thread in threads:
        messages = await ConversationManager(store).get_messages(thread.id)
        orphans += [f"{thread.id}: {call}" for call in _unanswered(messages)]
        prompts = _prompts(messages)
        turns += len(prompts)
        given = [one for one in accepted if one.thread == thread.id]
        repeated += [f"{thread.id}: {word}" for word, count in Counter(prompts).items() if count > 1]
        strange += [f"{thread.id}: {word}" for word in prompts if word not in {one.word for one in given}]
        done = [one.word for one in given if one.status == "completed"]
        missing += [f"{thread.id}: {word}" for word in done if word not in prompts]
        if [word for word in prompts if word in set(done)] != done:
            disordered.append(thread.id)
        if any(run.thread_id == thread.id and run.finished is None for run in runs.values()):
            disordered.append(f"{thread.id} has a run that hasn't ended")
    verdict.counts["threads"] = len(threads)
    verdict.counts["turns in their histories"] = turns
    verdict.expect("calls without exactly one result", orphans, turns)
    verdict.expect("turns repeated", repeated, turns)
    verdict.expect("turns of no input", strange, turns)
    verdict.expect("completed turns that a history lacks", missing, turns)
    verdict.expect("histories in another order", disordered, len(threads))


def _prompts(messages: Sequence[StoredMessage]) -> list[str]:
    return [
        str(part.content)
        for each in messages
        if isinstance(each.message, ModelRequest)
        for part in each.message.parts
        if isinstance(part, UserPromptPart)
    ]


def _unanswered(messages: Sequence[StoredMessage]) -> list[str]:
    """The calls that don't have exactly one result, and results without a call."""
    calls: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for each in messages:
        for part in each.message.parts:
            if isinstance(part, ToolCallPart):
                calls[part.tool_call_id] += 1
            elif isinstance(part, ToolReturnPart):
                results[part.tool_call_id] += 1
    return [call for call in calls | results if calls[call] != 1 or results[call] != 1]
