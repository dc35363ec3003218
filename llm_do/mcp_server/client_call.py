"""One call of a client: a run of its own, its questions, its progress and its result.

Clients are asked in two ways. Those of the protocol's earlier versions get a request while their call waits. Those of
2026-07-28 and later get the questions as the call's result, and call again with the answers; between the two calls the
run waits in this process.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)

from llm_do.errors import LlmDoError
from llm_do.mcp_server.client_questions import answer_of, approval_form, decision_of, question_form
from llm_do.runtime.approval.broker import ApprovalDecision, ApprovalRequest
from llm_do.runtime.context.user_questions import UserQuestion
from llm_do.runtime.record.events.event import Event
from llm_do.runtime.record.events.subscription import Subscription
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.results import RunResult
from llm_do.runtime.runtime import Runtime
from llm_do.text.json_data import to_json_data
from llm_do.text.output_text import output_text
from llm_do.ui.live.event_lines import event_line
from llm_do.ui.live.shown_events import shown_event
from llm_do.ui.reports.error_text import paragraph

__all__ = ["ClientCall", "RequestContext"]

RequestContext: TypeAlias = ServerRequestContext[Any, Any]

MOST_LINES = 1000
"""Lines of progress that wait for a slow client; older ones are dropped."""


class ClientCall:
    """A client's call, from its first request to its result.

    Args:
        params: What was requested.
        context: The request.
    """

    def __init__(self, params: CallToolRequestParams, context: RequestContext) -> None:
        self.token = secrets.token_urlsafe(24)
        self._params = params
        self._session: ServerSession = context.session
        self._request_id = context.request_id
        self._waiting: dict[str, tuple[ElicitRequestFormParams, asyncio.Future[ElicitResult]]] = {}
        self._asked = asyncio.Event()
        self._lines: asyncio.Queue[str] = asyncio.Queue(MOST_LINES)
        self._reported = 0
        self._run: asyncio.Task[RunResult] | None = None

    # -- questions

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the client about a tool call of the run."""
        return decision_of(await self._elicit(approval_form(request)))

    async def answer(self, question: UserQuestion) -> str:
        """Ask the client what an agent of the run asks."""
        return answer_of(await self._elicit(question_form(question)), question)

    async def _elicit(self, form: ElicitRequestFormParams) -> ElicitResult:
        if self._session.can_send_request:
            return await self._session.elicit_form(form.message, form.requested_schema, self._request_id)
        answered = asyncio.get_running_loop().create_future()
        key = f"question_{secrets.token_hex(4)}"
        self._waiting[key] = form, answered
        self._asked.set()
        try:
            return await answered
        finally:
            del self._waiting[key]

    def continues(self, params: CallToolRequestParams) -> bool:
        """Whether a request that has this call's token is the same call, with answers."""
        return (params.name, params.arguments or {}) == (self._params.name, self._params.arguments or {})

    def take_answers(self, params: CallToolRequestParams, context: RequestContext) -> None:
        """Pass the answers of a further request on to the run, and report to its sender from now on."""
        self._session, self._request_id = context.session, context.request_id
        self._asked.clear()
        for key, response in (params.input_responses or {}).items():
            waiting = self._waiting.get(key)
            if waiting is not None and isinstance(response, ElicitResult) and not waiting[1].done():
                waiting[1].set_result(response)

    # -- the run

    def start(self, runtime: Runtime, entry: str | None) -> asyncio.Task[RunResult]:
        """Start the run."""
        self._run = asyncio.ensure_future(self._carry_out(runtime, entry))
        return self._run

    async def _carry_out(self, runtime: Runtime, entry: str | None) -> RunResult:
        subscription = Subscription(self._on_event)
        try:
            return await runtime.execute(self._params.arguments or {}, entry=entry, subscription=subscription)
        finally:
            await runtime.aclose()

    def cancel(self) -> None:
        """End the run, if it still runs."""
        if self._run is not None:
            self._run.cancel()

    async def wait(self) -> CallToolResult | InputRequiredResult:
        """Wait for the run's end, or until it has a question that the client answers with another call.

        Raises:
            asyncio.CancelledError: The client has cancelled its request; the run is cancelled with it.
        """
        assert self._run is not None
        if any(not answered.done() for _, answered in self._waiting.values()):
            self._asked.set()
        asked = asyncio.ensure_future(self._asked.wait())
        reporting = asyncio.ensure_future(self._report(self._session))
        try:
            await asyncio.wait({self._run, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._run.cancel()
            raise
        finally:
            asked.cancel()
            reporting.cancel()
        if self._run.done():
            return _result(self._run)
        open_forms = {key: form for key, (form, answered) in self._waiting.items() if not answered.done()}
        return InputRequiredResult(
            input_requests={key: ElicitRequest(params=form) for key, form in open_forms.items()},
            request_state=self.token,
        )

    # -- progress

    def _on_event(self, event: Event) -> None:
        line = event_line(shown_event(event))
        if line is None:
            return
        if self._lines.full():
            self._lines.get_nowait()
        self._lines.put_nowait(line)

    async def _report(self, session: ServerSession) -> None:
        """Send each line to a client that has asked for progress; the number only counts them."""
        while True:
            line = await self._lines.get()
            self._reported += 1
            await session.report_progress(self._reported, message=line)


def _result(run: asyncio.Task[RunResult]) -> CallToolResult:
    """A run's end as the result of its call; a failure is something that the client's model can read."""
    try:
        result = run.result()
    except LlmDoError as error:  # the input is invalid: nothing has run
        return _failure(error)
    about = _about(result)
    if result.error is not None:
        return _failure(result.error, about)
    data = to_json_data(result.output)
    structured = cast("dict[str, Any]", data) if isinstance(data, dict) else None
    content = [TextContent(type="text", text=output_text(result.output))]
    return CallToolResult(content=list(content), structured_content=structured, _meta=about)


def _failure(error: BaseException, about: Mapping[str, Any] | None = None) -> CallToolResult:
    known = error if isinstance(error, LlmDoError) else None
    text = paragraph(
        str(known.message if known is not None else error),
        agent_path=known.agent_path if known is not None else None,
        hint=known.hint if known is not None else None,
    )
    return CallToolResult(
        content=[TextContent(type="text", text=redactor()(text))], is_error=True, _meta=dict(about or {})
    )


def _about(result: RunResult) -> dict[str, Any]:
    """What a client may show of a run beside its result; `llm-do runs show` takes the id."""
    return {"llm-do/run_id": result.run_id, "llm-do/usage": to_json_data(result.usage)}
