"""A flow as a service: a run's events as server-sent events, and approvals answered by a second request.

    POST /runs            {"input": "..."}                    the run's events, as they happen
    POST /answers/ID      {"answer": "once", "note": "..."}   answers the question ID that a stream has put
    GET  /runs                                                the runs that go on now

Each run has a `Runtime` of its own: what one person allows "for this session" holds for nobody else, and a question
that nobody answers keeps nobody else waiting. Agents are built once per project all the same.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from llm_do import Answer, ApprovalDecision, ApprovalRequest, InputError, LlmDoError, Project, Runtime

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that nothing on the way closes the connection."""


@dataclass(eq=False)
class Visit:
    """One client's run: what is sent to it, in order."""

    questions: dict[str, asyncio.Future[ApprovalDecision]]
    outbox: asyncio.Queue[tuple[str, Any] | None] = field(default_factory=asyncio.Queue)
    run_id: str = ""

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        """Put a question to the client. Its id is a secret between the two: who has it may answer."""
        question = secrets.token_urlsafe(16)
        answer = self.questions[question] = asyncio.get_running_loop().create_future()
        told = {
            "id": question,
            "agent": request.agent_path,
            "tool": request.tool_name,
            "args": dict(request.args),
            "reason": request.reason,
            "diff": request.diff,
        }
        self.outbox.put_nowait(("question", told))
        try:
            return await answer
        finally:
            del self.questions[question]


class Service:
    """The routes, and what goes on behind them.

    Args:
        project: What runs.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.visits: set[Visit] = set()
        self.questions: dict[str, asyncio.Future[ApprovalDecision]] = {}
        self.app = Starlette(
            routes=[
                Route("/runs", self.start, methods=["POST"]),
                Route("/runs", self.list, methods=["GET"]),
                Route("/answers/{question}", self.answer, methods=["POST"]),
            ]
        )

    async def start(self, request: Request) -> Response:
        """Run the project's entry and send its events until it ends or the client goes away."""
        body = await body_of(request)
        return StreamingResponse(self.events(body.get("input")), media_type="text/event-stream")

    async def events(self, value: object) -> AsyncIterator[str]:
        """What one client gets: every event of its run, questions among them, and how it ended."""
        visit = Visit(self.questions)
        task = asyncio.ensure_future(self.run(visit, value))
        self.visits.add(visit)
        task.add_done_callback(lambda _: self.visits.discard(visit))
        try:
            while True:
                try:
                    item = await asyncio.wait_for(visit.outbox.get(), KEEP_ALIVE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if item is None:
                    return
                yield f"event: {item[0]}\ndata: {json.dumps(item[1])}\n\n"
        finally:
            # The client has it all, or is gone: then its run ends here, and its open question with it.
            task.cancel()

    async def run(self, visit: Visit, value: object) -> None:
        """Carry out a run, and put what happens into the client's outbox."""
        runtime = Runtime(self.project, approvals=visit.ask)
        try:
            async for event in runtime.stream(value):
                visit.run_id = event.run_id
                visit.outbox.put_nowait((event.type, event.to_dict()))
        except InputError as error:
            visit.outbox.put_nowait(("refused", {"message": error.message, "hint": error.hint}))
        except LlmDoError:
            pass  # the last event of the run has said so
        finally:
            visit.outbox.put_nowait(None)
            await runtime.aclose()

    async def list(self, request: Request) -> Response:
        """The runs that go on now."""
        return JSONResponse({"runs": sorted(visit.run_id for visit in self.visits)})

    async def answer(self, request: Request) -> Response:
        """Answer a question that some stream has put."""
        body = await body_of(request)
        waiting = self.questions.get(request.path_params["question"])
        if waiting is None or waiting.done():
            return JSONResponse({"error": "nobody waits for this answer"}, status_code=404)
        if body.get("answer") not in get_args(Answer):
            return JSONResponse({"error": f"answer one of {', '.join(get_args(Answer))}"}, status_code=422)
        waiting.set_result(ApprovalDecision(body["answer"], note=str(body.get("note", ""))))
        return Response(status_code=204)


async def body_of(request: Request) -> dict[str, Any]:
    """A request's JSON object; empty when it is none."""
    try:
        body = await request.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


app = Service(Project.load(Path(__file__).parent)).app
"""What a server runs: `uvicorn service:app`."""
