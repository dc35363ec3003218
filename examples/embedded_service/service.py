"""A flow as a service: a run's events as server-sent events, and approvals answered by a second request.

    POST /runs            {"input": "..."}                    the run's events, as they happen
    POST /answers/ID      {"answer": "once", "note": "..."}   answers the question ID from a stream
    GET  /runs                                                the current runs

Each run has its own `Runtime`, so an unanswered question doesn't block other runs, and accepts no answer that lasts:
what one person allows applies to no one else. Agents are still built only once per project.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from llm_do import (
    Answer,
    ApprovalDecision,
    ApprovalRequest,
    InputError,
    LlmDoError,
    Project,
    RunApprovalPolicy,
    Runtime,
)

ANSWERS: tuple[Answer, ...] = ("once", "all", "deny", "abort")
"""The answers that clients may give. None of them lasts: a client must not decide for the next one."""

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection open."""


@dataclass(eq=False)
class Visit:
    """One client's run, and the queue of what to send to it."""

    questions: dict[str, asyncio.Future[ApprovalDecision]]
    outbox: asyncio.Queue[tuple[str, Any] | None] = field(default_factory=asyncio.Queue)
    run_id: str = ""

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the client. The question's id is a secret: whoever has it may answer."""
        question = secrets.token_urlsafe(16)
        answer = self.questions[question] = asyncio.get_running_loop().create_future()
        question_data = {
            "id": question,
            "agent": request.agent_path,
            "tool": request.tool_name,
            "args": dict(request.args),
            "reason": request.reason,
            "diff": request.diff,
            "identical": request.identical,
            "answers": list(request.answers),
        }
        self.outbox.put_nowait(("question", question_data))
        try:
            return await answer
        finally:
            del self.questions[question]


class Service:
    """The routes and their handlers.

    Args:
        project: The project to run.
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
        """Run the project's entry and stream its events until the run ends or the client disconnects."""
        body = await body_of(request)
        return StreamingResponse(self.events(body.get("input")), media_type="text/event-stream")

    async def events(self, value: object) -> AsyncIterator[str]:
        """Yield everything one client receives: its run's events, the approval questions, and the end."""
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
            # The client has received everything or has disconnected: the run and any open question end here.
            task.cancel()

    async def run(self, visit: Visit, value: object) -> None:
        """Run the project and put everything that happens into the client's outbox."""
        runtime = Runtime(self.project, approvals=RunApprovalPolicy(approval_callback=visit.ask, answers=ANSWERS))
        try:
            async for event in runtime.stream(value):
                visit.run_id = event.run_id
                visit.outbox.put_nowait((event.type, event.to_dict()))
        except InputError as error:
            visit.outbox.put_nowait(("refused", {"message": error.message, "hint": error.hint}))
        except LlmDoError:
            pass  # already reported by the run's last event
        finally:
            visit.outbox.put_nowait(None)
            await runtime.aclose()

    async def list(self, request: Request) -> Response:
        """List the current runs."""
        return JSONResponse({"runs": sorted(visit.run_id for visit in self.visits)})

    async def answer(self, request: Request) -> Response:
        """Answer a question from one of the streams."""
        body = await body_of(request)
        waiting = self.questions.get(request.path_params["question"])
        if waiting is None or waiting.done():
            return JSONResponse({"error": "no question with this id is waiting for an answer"}, status_code=404)
        if body.get("answer") not in ANSWERS:
            return JSONResponse({"error": f"answer one of {', '.join(ANSWERS)}"}, status_code=422)
        waiting.set_result(ApprovalDecision(body["answer"], note=str(body.get("note", ""))))
        return Response(status_code=204)


async def body_of(request: Request) -> dict[str, Any]:
    """Read a request's JSON object; return an empty one if the body isn't an object."""
    try:
        body = await request.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


app = Service(Project.load(Path(__file__).parent)).app
"""The application for a server: `uvicorn service:app`."""
