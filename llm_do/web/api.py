"""`Api`: the routes below `/api`, over the store and the runs of each served project."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from llm_do.errors import EXIT_CODES
from llm_do.runtime.record.events import event_from_dict
from llm_do.runtime.record.stored_records import Filter, RunFilter, RunRecord
from llm_do.ui.live.run_comparison import ComparedRun, RunComparison
from llm_do.web.event_stream import event_stream, last_seen
from llm_do.web.openapi import DESCRIPTION
from llm_do.web.requests import BadRequestError, json_body, number_of, text_of, user_of
from llm_do.web.run_document import document_text, stored_document
from llm_do.web.served_project import ServedProject

__all__ = ["Api"]

MOST_RUNS = 500
"""Runs of one list."""


class Api:
    """The routes of the interface.

    Args:
        projects: The projects, the first of which is meant where none is named.
    """

    def __init__(self, projects: Sequence[ServedProject]) -> None:
        self._projects = {each.name: each for each in projects}
        self.routes = [
            Route("/api/openapi.json", self.describe),
            Route("/api/projects", self.projects),
            Route("/api/threads", self.threads),
            Route("/api/compare", self.compare),
            Route("/api/runs", self.runs, methods=["GET"]),
            Route("/api/runs", self.start, methods=["POST"]),
            Route("/api/runs/{run}", self.run, methods=["GET"]),
            Route("/api/runs/{run}", self.cancel, methods=["DELETE"]),
            Route("/api/runs/{run}/events", self.events),
            Route("/api/runs/{run}/test", self.save_test, methods=["POST"]),
            Route("/api/runs/{run}/questions", self.questions, methods=["GET"]),
            Route("/api/runs/{run}/questions/{question}", self.answer, methods=["POST"]),
        ]

    # -- reading

    async def describe(self, request: Request) -> Response:
        """Describe the interface itself."""
        return JSONResponse(DESCRIPTION)

    async def projects(self, request: Request) -> Response:
        """List the projects, and what can be run of each."""
        found = [
            {"name": each.name, "description": each.project.description, "entries": each.entries()}
            for each in self._projects.values()
        ]
        return JSONResponse({"projects": found})

    async def runs(self, request: Request) -> Response:
        """List runs, the most recent first."""
        query = request.query_params
        status = query.get("status")
        if status is not None and status not in ("running", "stopped", *EXIT_CODES):
            raise BadRequestError(f"runs have no status {status!r}")
        limit = number_of(request, "limit", 50, MOST_RUNS)
        chosen = RunFilter(
            thread_id=query.get("thread"),
            statuses=(status,) if status is not None else None,
            entry=query.get("entry"),
            user_id=user_of(request),
        )
        found: list[tuple[RunRecord, ServedProject]] = []
        for project in self._chosen(query.get("project")):
            await project.store.recover()
            found += [(run, project) for run in await project.store.runs(filter=chosen, limit=limit)]
        found.sort(key=lambda each: each[0].started, reverse=True)
        return JSONResponse({"runs": [self._listed(run, project) for run, project in found[:limit]]})

    def _listed(self, run: RunRecord, project: ServedProject) -> dict[str, Any]:
        waiting = len(project.questions.of_run(run.id))
        return {**run.to_dict(), "project": project.name, "here": project.is_active(run.id), "questions": waiting}

    async def threads(self, request: Request) -> Response:
        """List conversations, the most recent first."""
        user, limit = user_of(request), number_of(request, "limit", 50, MOST_RUNS)
        found: list[dict[str, Any]] = []
        for project in self._chosen(request.query_params.get("project")):
            for each in await project.store.threads(user, every_user=user is None, limit=limit):
                times = {"created": each.created, "updated": each.updated}
                whose = {"thread_id": each.id, "user_id": each.user_id, "project": project.name}
                found.append({**whose, "messages": each.length, **times})
        found.sort(key=lambda each: each["updated"], reverse=True)
        return JSONResponse({"threads": found[:limit]})

    async def run(self, request: Request) -> Response:
        """Describe a run with its events, its requests, and the questions that it waits for."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        document = await stored_document(project.store, run, project=project.name)
        more = {
            "here": project.is_active(run.id),
            "questions": project.questions.of_run(run.id),
        }
        text = await asyncio.to_thread(document_text, {**document, **more})
        return Response(text, media_type="application/json")

    async def events(self, request: Request) -> Response:
        """Stream the events of a run, from those that the client hasn't got on, until the run has ended."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        try:
            after = last_seen(request.headers.get("last-event-id"), request.query_params.get("after"))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        return StreamingResponse(event_stream(project.follow(run.id, after)), media_type="text/event-stream")

    async def questions(self, request: Request) -> Response:
        """List the questions that a run waits for."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        return JSONResponse({"here": project.is_active(run.id), "questions": project.questions.of_run(run.id)})

    async def compare(self, request: Request) -> Response:
        """Compare two runs: where they parted, and what each of them came to."""
        names = [request.query_params.get(name) for name in ("first", "second")]
        runs: list[ComparedRun] = []
        for name in names:
            if not name:
                raise BadRequestError("`first` and `second` have to name runs")
            project, run = await self._found(name, user_of(request))
            recorded = await project.store.observations(Filter(run_id=run.id))
            events = [event for event in (event_from_dict(each.data) for each in recorded) if event is not None]
            runs.append(ComparedRun(run, await project.store.exchanges(run.id), events))
        comparison = RunComparison(*runs)
        more = {"rows": comparison.rows(), "output_diff": [] if comparison.same_output else comparison.output_diff()}
        return Response(document_text({**comparison.to_data(), **more}), media_type="application/json")

    # -- writing

    async def start(self, request: Request) -> Response:
        """Begin a run."""
        body = await json_body(request, "input", "entry", "thread", "project")
        project = self._chosen(text_of(body, "project"))[0]
        value = body.get("input")
        if value is not None and not isinstance(value, str | dict):
            raise BadRequestError("`input` has to be a text, or an object with the fields of the entry's input")
        run_id = await project.start(
            value, entry=text_of(body, "entry"), thread=text_of(body, "thread"), user=user_of(request)
        )
        place = {"Location": f"/api/runs/{run_id}"}
        return JSONResponse({"run_id": run_id, "project": project.name}, 201, place)

    async def answer(self, request: Request) -> Response:
        """Answer a question of a run."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        body = await json_body(request, "answer", "digest", "note")
        if not project.questions.answer(run.id, request.path_params["question"], body):
            raise BadRequestError("the run has no question with this id", 404)
        return Response(status_code=204)

    async def cancel(self, request: Request) -> Response:
        """End a run that the server has begun, or drop a durable one that waits."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        await project.cancel(run)
        return JSONResponse({"run_id": run.id}, 202)

    async def save_test(self, request: Request) -> Response:
        """Make a test of a run among the project's files, which only the owner of the machine may change."""
        user = user_of(request)
        project, run = await self._found(request.path_params["run"], user)
        await json_body(request)
        if user is not None:
            raise BadRequestError("a user's key can't change the project's files", 403)
        passes, report = await project.save_test(run)
        return JSONResponse({"passes": passes, "report": report}, 201)

    # -- finding

    def _chosen(self, name: str | None) -> list[ServedProject]:
        """The project of a name, or all of them."""
        if name is None:
            return list(self._projects.values())
        if name not in self._projects:
            raise BadRequestError(f"there is no project {name!r}", 404)
        return [self._projects[name]]

    async def _found(self, run_id: str, user: str | None) -> tuple[ServedProject, RunRecord]:
        """A run by its id, or a prefix that no other has, in whichever project has it."""
        for project in self._projects.values():
            await project.store.recover()
            run = await project.run(run_id, user)
            if run is not None:
                return project, run
        raise BadRequestError("there is no run with this id", 404)
