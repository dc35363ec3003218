"""One attempt of a request as a step of a durable run: one that has ended isn't made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_do.models.providers.model_names import path_from_root
from llm_do.runtime.context.emission import live_step
from llm_do.runtime.record.canonical_messages import canonical_text
from llm_do.runtime.record.request_outcome import RequestOutcome
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.sent_request import SETUP, RequestReader, read_request, request_key
from llm_do.runtime.record.transport import Answer
from llm_do.runtime.request.cost import is_free
from llm_do.runtime.steps.step_log import replay_error

if TYPE_CHECKING:
    from pathlib import Path

    from llm_do.runtime.context.budget import Reservation
    from llm_do.runtime.context.call_context import CallContext
    from llm_do.runtime.record.exchanges import RequestPlace
    from llm_do.runtime.record.sent_request import SentRequest
    from llm_do.runtime.record.transport import OutgoingRequest
    from llm_do.runtime.steps.durable_run import DurableRun

__all__ = ["RequestStep", "count_unfinished_requests", "is_replayed", "request_step"]


class RequestStep:
    """The step of one attempt.

    Args:
        ctx: The call.
        durable: What makes its run durable.
        key: The step's key.
        request: What is sent.
        sent: That in canonical form.
        mark: A digest of each part of it.
    """

    def __init__(
        self,
        ctx: CallContext,
        durable: DurableRun,
        key: str,
        request: OutgoingRequest,
        sent: SentRequest,
        mark: Mapping[str, str],
    ) -> None:
        self._ctx = ctx
        self._log = durable.log
        self._key = key
        self._request = request
        self._sent = sent
        self._mark = mark
        self.replayed = False

    async def begin(self, held: Reservation) -> Answer | None:
        """The answer of an earlier attempt; None if the request is to be made.

        Raises:
            ReplayError: The request isn't the one that was answered, or a step can't be replayed.
        """
        kept = self._log.replay(self._key)
        if kept is not None:
            self._check(kept["mark"])
            self.replayed = True
            return Answer(RequestOutcome.from_dict(kept["outcome"]), kept["partial"])
        ctx = self._ctx
        await live_step(ctx, self._key, lambda: f"request {ctx.frame.requests} of {ctx.path}")
        if self._log.rehearsal is not None:
            self._log.rehearsal.sent[self._key] = self._sent
        budget = self._ctx.run.budget
        if budget.is_limited:
            free = is_free(self._request.model)
            data = {"input_tokens": held.input_tokens, "output_tokens": held.output_tokens, "cost_usd": held.cost_usd}
            data["free"] = free
            await self._log.begin(self._key, "request", data)
        return None

    def finish(self, answer: Answer) -> None:
        """Keep what came back, with the events of the same moment."""
        if not self.replayed:
            data = {
                "path": self._ctx.path,
                "mark": self._mark,
                "outcome": answer.outcome.to_dict(),
                "partial": answer.partial,
            }
            self._log.end(self._key, "request", data)

    def _check(self, mark: Mapping[str, str]) -> None:
        if self._mark == mark:
            return
        changed = [part for part in SETUP if self._mark[part] != mark.get(part)] or ["messages"]
        ctx, rehearsal = self._ctx, self._log.rehearsal
        request = f"request {ctx.frame.requests} of {ctx.path}"
        difference = f"{request} isn't what was sent before: its {' and '.join(changed)} changed"
        error = replay_error(ctx.run_id, difference, agent_path=ctx.path)
        if rehearsal is not None and (before := rehearsal.sent.get(self._key)) is not None:
            error.requests = (before, self._sent)
        else:
            error.hint = "Undo what changed in the project, or begin a new run."
        raise error


def request_step(
    ctx: CallContext, request: OutgoingRequest, place: RequestPlace, sent: SentRequest | None
) -> RequestStep | None:
    """The step of one attempt of a request; None in a run that isn't durable."""
    durable = ctx.run.durable
    if durable is None:
        return None
    if sent is None:  # exchanges aren't kept
        sent = read_request(durable.readers.setdefault((place.call_id, place.purpose), RequestReader()), request)
    setup = _movable(sent.setup, ctx.run.root)
    last = sent.digests[-1] if sent.digests else ""
    key = sent.key if setup is sent.setup else request_key(canonical_text(setup), last)
    mark = {**durable.parts_of(setup), "request": key[:16]}
    return RequestStep(ctx, durable, durable.log.numbered(_key(place)), request, sent, mark)


def _movable(setup: Mapping[str, Any], root: Path) -> Mapping[str, Any]:
    """A setup that is the same wherever the project's folder is: it may be moved before the run continues."""
    model: str | list[str] = setup["model"]
    found = path_from_root(model, root) if isinstance(model, str) else [path_from_root(each, root) for each in model]
    return setup if found == model else {**setup, "model": found}


def is_replayed(ctx: CallContext, place: RequestPlace) -> bool:
    """Whether the next attempt at a place is a step that an earlier attempt at the run has finished."""
    durable = ctx.run.durable
    return durable is not None and durable.log.has_finished(_key(place))


def _key(place: RequestPlace) -> str:
    return f"{place.call_id}/r{place.number}{'' if place.purpose == 'step' else f'/{place.purpose}'}"


def count_unfinished_requests(ctx: CallContext) -> None:
    """Count the requests that were in flight when the run was stopped as used: they may have been paid for."""
    durable = ctx.run.durable
    if durable is None:
        return
    for data in durable.log.unfinished("request").values():
        tokens, cost = (data["input_tokens"], data["output_tokens"]), data.get("cost_usd")
        held = ctx.run.budget.reserve(*tokens, cost)
        used = Usage(requests=1, input_tokens=tokens[0], output_tokens=tokens[1], cost_usd=cost)
        ctx.run.budget.settle(held, used, free=data["free"])
