"""Has a question of a durable run answered: by whoever is there, by another process, or in a later attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from llm_do.errors import AbortedError
from llm_do.policy.pattern import PatternError
from llm_do.policy.rules import Rule
from llm_do.policy.values import Decision
from llm_do.runtime.approval.broker import ApprovalDecision, Broker, Question
from llm_do.runtime.approval.kept_approval import KeptApproval, answer_data, decision_of
from llm_do.runtime.approval.person_answers import granted, person_decision
from llm_do.runtime.steps.run_questions import StepQuestions

__all__ = ["answer_frozen", "answer_kept", "lasting_answers"]


async def answer_kept(
    asked: KeptApproval,
    broker: Broker | None,
    automatic: Callable[[], Decision | None],
    keep: Callable[[ApprovalDecision], None],
) -> Decision:
    """Have a question of a durable run answered.

    An answer that was given to exactly this question comes first, then what is saved, an option or the mode, then a
    person.

    Args:
        asked: The question.
        broker: Asks a person who is there; None if no one is.
        automatic: What answers it without a person; None when nothing does.
        keep: Keeps an answer that holds for further calls.
    """
    given = await asked.answered()
    found: Decision | None = None
    if given is None:
        found = automatic()
        if found is not None:
            asked.note(found)
            return found
        await asked.put()
    effect, by = "deny", "cancelled"
    try:
        if given is None:
            with asked.call.waiting():
                given, found = await _wait(asked, broker, automatic, keep)
        elif given["answer"] == "always" and automatic() is None:
            keep(decision_of(given))
        if found is None:
            found = person_decision(asked.info, asked.decision, decision_of(given))
            if "source" in given:  # what allowed it, before the run was stopped, was no person
                found = replace(found, source=given["source"], reason=given["reason"])
        if found.effect == "allow" and found.source == "person":
            found = replace(found, basis=asked.basis)
        effect, by = found.effect, found.source
        return found
    except AbortedError:
        by = "person"
        raise
    finally:
        if by == "cancelled":
            asked.close()
        asked.use()
        asked.emit_resolved(effect, by)


async def answer_frozen(asked: KeptApproval, decide: Callable[[], Decision]) -> Decision:
    """Have the lock answer a question of a durable run: no person is asked, and the question isn't kept.

    A call of an agent that the lock has allowed before stays allowed when it is made again: its entry may have expired
    since then.

    Args:
        asked: The question.
        decide: What the lock says; a denial if it says nothing.
    """
    given = await asked.answered()
    if given is not None and given.get("source") == "remembered":
        asked.use()
        found = person_decision(asked.info, asked.decision, decision_of(given))
        return replace(found, source=given["source"], reason=given["reason"])
    found = decide()
    asked.note(found)
    return found


async def _wait(
    asked: KeptApproval,
    broker: Broker | None,
    automatic: Callable[[], Decision | None],
    keep: Callable[[ApprovalDecision], None],
) -> tuple[dict[str, Any], Decision | None]:
    """Ask whoever is there, and wait for the answer; also returns what answered the question without a person."""
    found: list[Decision] = []
    kept_here = False

    def keep_here(answer: ApprovalDecision) -> None:
        nonlocal kept_here
        kept_here = answer.answer != "unanswered"
        keep(answer)

    async def ask() -> Mapping[str, Any] | None:
        assert broker is not None
        answer = await broker.ask(
            Question(
                key=(asked.call.run_id, asked.info.path, asked.digest),
                known=lambda: asked.call.answered(asked.digest) or automatic(),
                request=asked.refresh,
                keep=keep_here,
                settle=asked.settle,
            )
        )
        if isinstance(answer, Decision):
            found.append(answer)
            return {"answer": "once" if answer.effect == "allow" else "deny", "by": answer.source}
        return answer_data(answer) if answer.answer != "unanswered" else None

    given = await asked.wait(ask if broker is not None else None)
    if not found and not kept_here:
        keep(decision_of(given))
    return given, found[0] if found else None


def lasting_answers(kept: StepQuestions | None) -> tuple[set[str], list[Rule]]:
    """What persons have allowed for the rest of a durable run: calls by their digests, and rules."""
    digests: set[str] = set()
    rules: list[Rule] = []
    if kept is None:
        return digests, rules
    for row in kept.run.answered():
        answer = kept.run.answer(row) if row.kind == "approval" else None
        if answer is None or answer["answer"] not in ("session", "always"):
            continue
        request = kept.run.request(row)
        if request["person_only"]:
            continue
        if answer["pattern"] is None:
            digests.add(request["digest"])
        else:
            with suppress(PatternError):
                pattern = granted(answer["pattern"], request["agent_path"])
                rules.append(Rule("allow", pattern, pattern.text, place="this run"))
    return digests, rules
