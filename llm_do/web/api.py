"""`Api`: the routes below `/api`, over the store and the runs of each served project."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from llm_do.errors import EXIT_CODES, UsageError
from llm_do.runtime.record.events.event import event_from_dict
from llm_do.runtime.record.stored_records import Filter, RunFilter, RunRecord
from llm_do.runtime.steps.run_questions import process_user
from llm_do.text.generated_ids import WRITE_MORE, several_begin_alike
from llm_do.threads.sql.sql_store import SqlStore
from llm_do.ui.live.run_comparison import ComparedRun, RunComparison
from llm_do.web.conversation import conversation
from llm_do.web.event_stream import EventStreams, last_seen
from llm_do.web.openapi import DESCRIPTION, query_names
from llm_do.web.requests import BadRequestError, check_query, flag_of, json_body, number_of, text_of, user_of
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
        self._streams = EventStreams()
        self.routes = [
            _route("/api/openapi.json", self.describe),
            _route("/api/projects", self.projects),
            _route("/api/threads", self.threads),
            _route("/api/threads/{thread:path}", self.thread),
            _route("/api/questions", self.all_questions),
            _route("/api/compare", self.compare),
            _route("/api/runs", self.runs),
            _route("/api/runs", self.start, "POST"),
            _route("/api/runs/{run}", self.run),
            _route("/api/runs/{run}", self.cancel, "DELETE"),
            _route("/api/runs/{run}/resume", self.resume, "POST"),
            _route("/api/runs/{run}/events", self.events),
            _route("/api/runs/{run}/test", self.save_test, "POST"),
            _route("/api/runs/{run}/questions", self.questions),
            _route("/api/runs/{run}/questions/{question}", self.answer, "POST"),
        ]

    def close(self) -> None:
        """End the streams of events."""
        self._streams.close()

    # -- reading

    async def describe(self, request: Request) -> Response:
        """Describe the interface itself."""
        return JSONResponse(DESCRIPTION)

    async def projects(self, request: Request) -> Response:
        """List the projects, and what can be run of each."""
        found = [
            {
                "name": each.name,
                "description": each.project.description,
                "entries": each.entries(),
                "inputs": each.input_schemas(),
                "default": each.project.entry.args is not None,
            }
            for each in self._projects.values()
        ]
        return JSONResponse({"projects": found})

    async def runs(self, request: Request) -> Response:
        """List runs, the most recent first."""
        query = request.query_params
        status = query.get("status")
        if status is not None and status not in ("queued", "running", "stopped", "suspended", *EXIT_CODES):
            raise BadRequestError(f"runs have no status {status!r}")
        limit = number_of(request, "limit", 50, MOST_RUNS)
        chosen = RunFilter(
            thread_id=query.get("thread"),
            statuses=(status,) if status is not None else None,
            entry=query.get("entry"),
            user_id=user_of(request),
        )
        found: list[dict[str, Any]] = []
        for store, sharing in self._stores():
            await store.recover()
            waiting = await _waiting(sharing)
            most = limit if len(sharing) == 1 else MOST_RUNS
            for run in await store.runs(filter=chosen, limit=most):
                project = _project_of(run, sharing)
                if project in self._chosen(query.get("project")):
                    more = {"here": project.is_active(run.id), "questions": waiting[run.id]}
                    found.append({**run.to_dict(), "project": project.name, **more})
        found.sort(key=lambda each: each["started"], reverse=True)
        return JSONResponse({"runs": found[:limit]})

    async def threads(self, request: Request) -> Response:
        """List conversations, the most recent first."""
        user, limit = user_of(request), number_of(request, "limit", 50, MOST_RUNS)
        found: list[dict[str, Any]] = []
        chosen = self._chosen(request.query_params.get("project"))
        for store, sharing in self._stores():
            named = [project.name for project in sharing if project in chosen]
            for each in await store.threads(user, every_user=user is None, limit=limit) if named else ():
                times = {"created": each.created, "updated": each.updated}
                whose = {"thread_id": each.id, "user_id": each.user_id, "project": named[0]}
                found.append({**whose, "messages": each.length, **times})
        found.sort(key=lambda each: each["updated"], reverse=True)
        return JSONResponse({"threads": found[:limit]})

    async def thread(self, request: Request) -> Response:
        """Describe a conversation with its latest turns; of several users' with one id, the one that `user` names."""
        user, limit = user_of(request), number_of(request, "limit", 200, MOST_RUNS)
        whose = request.query_params.get("user") if user is None else user
        for project in self._chosen(request.query_params.get("project")):
            await project.store.recover()
            found = await project.store.thread(request.path_params["thread"], whose)
            if found is not None:
                data = await conversation(project.store, found, limit=limit)
                text = document_text({**data, "project": project.name, "mine": found.user_id == user})
                return Response(text, media_type="application/json")
        raise BadRequestError("there is no conversation with this id", 404)

    async def run(self, request: Request) -> Response:
        """Describe a run with its events, its requests, and the questions that it waits for."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        document = await stored_document(project.store, run, project=project.name, root=project.project.root)
        more = {**await _questions(project, run), "mine": run.user_id == user_of(request)}
        text = await asyncio.to_thread(document_text, {**document, **more})
        return Response(text, media_type="application/json")

    async def events(self, request: Request) -> Response:
        """Stream the events of a run, from those that the client hasn't got on, until the run has ended."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        try:
            after = last_seen(request.headers.get("last-event-id"), request.query_params.get("after"))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        return self._streams.respond(project.follow(run.id, after), user_of(request))

    async def questions(self, request: Request) -> Response:
        """List the questions that a run waits for, and who has answered the others."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        text = document_text({**await _questions(project, run), "status": run.status})
        return Response(text, media_type="application/json")

    async def all_questions(self, request: Request) -> Response:
        """List the questions that runs wait for, of this server and of durable runs anywhere."""
        user = user_of(request)
        found: list[dict[str, Any]] = []
        for store, sharing in self._stores():
            await store.recover()
            for each in await _pending(sharing):
                run = await store.run(each["run_id"])
                if run is None or run.id != each["run_id"] or user not in (None, run.user_id):
                    continue
                project = _project_of(run, sharing)
                if project in self._chosen(request.query_params.get("project")):
                    found.append({**each, "project": project.name, "entry": run.entry})
        found.sort(key=lambda each: each["asked"])
        return Response(document_text({"questions": found}), media_type="application/json")

    async def compare(self, request: Request) -> Response:
        """Compare two runs: where they diverge, and how each ended."""
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
        body = await json_body(request, "input", "entry", "thread", "project", "durable")
        project = self._chosen(text_of(body, "project"))[0]
        value = body.get("input")
        if value is not None and not isinstance(value, str | dict):
            raise BadRequestError("`input` has to be a text, or an object with the fields of the entry's input")
        entry, user = text_of(body, "entry"), user_of(request)
        if user is not None and project.attaches(cast("Any", value), entry):
            raise BadRequestError("a user's key can't attach the project's files", 403)
        run_id = await project.start(
            value,
            entry=entry,
            thread=text_of(body, "thread"),
            user=user,
            durable=flag_of(body, "durable"),
        )
        place = {"Location": f"/api/runs/{run_id}"}
        return JSONResponse({"run_id": run_id, "project": project.name}, 201, place)

    async def answer(self, request: Request) -> Response:
        """Answer a question of a run, and continue the run if it is durable and no process has it."""
        user = user_of(request)
        project, run = await self._found(request.path_params["run"], user)
        body = await json_body(request, "answer", "digest", "note")
        done = await project.answer(run, request.path_params["question"], body, user or process_user())
        if done is None:
            raise BadRequestError("the run has no question with this id", 404)
        return JSONResponse(done)

    async def resume(self, request: Request) -> Response:
        """Continue a durable run that no process has."""
        project, run = await self._found(request.path_params["run"], user_of(request))
        await json_body(request)
        try:
            await project.resume(run.id)
        except UsageError as error:
            raise BadRequestError(error.message, 409, hint=error.hint) from error
        return JSONResponse({"run_id": run.id}, 202)

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

    def _stores(self) -> list[tuple[SqlStore, list[ServedProject]]]:
        """Each store with the projects that keep their runs in it."""
        found: dict[int, list[ServedProject]] = {}
        for project in self._projects.values():
            found.setdefault(id(project.store), []).append(project)
        return [(sharing[0].store, sharing) for sharing in found.values()]

    async def _found(self, run_id: str, user: str | None) -> tuple[ServedProject, RunRecord]:
        """A run by its id, or a prefix that no other has, and the project that has it."""
        found: list[tuple[ServedProject, RunRecord]] = []
        refusal: UsageError | None = None
        for store, sharing in self._stores():
            await store.recover()
            try:
                run = await sharing[0].run(run_id, user)
            except UsageError as error:  # several runs of one store; another may have the run whose id it is
                refusal = error
                continue
            if run is not None and run.id == run_id:
                return _project_of(run, sharing), run
            if run is not None:
                found.append((_project_of(run, sharing), run))
        if refusal is not None:
            raise BadRequestError(refusal.message, 404, hint=refusal.hint)
        if len(found) > 1:
            message = several_begin_alike("runs", run_id, [run.id for _, run in found])
            raise BadRequestError(message, 404, hint=WRITE_MORE)
        if not found:
            raise BadRequestError("there is no run with this id", 404)
        return found[0]


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str = "GET") -> Route:
    """A route that refuses parameters that aren't described: a misspelled filter would list everything."""
    known = query_names(path.replace(":path}", "}"), method)

    async def checked(request: Request) -> Response:
        check_query(request, known)
        return await endpoint(request)

    return Route(path, checked, methods=[method])


def _project_of(run: RunRecord, sharing: Sequence[ServedProject]) -> ServedProject:
    """The project of a run among those that share a store: the one that runs it, or the first that has its entry."""
    found = [each for each in sharing if each.is_active(run.id)]
    found += [each for each in sharing if run.entry in each.entries()]
    return found[0] if found else sharing[0]


async def _pending(sharing: Sequence[ServedProject]) -> list[dict[str, Any]]:
    """The questions that wait in projects that share a store, each once."""
    found: dict[str, dict[str, Any]] = {}
    for project in sharing:
        found |= {each["id"]: each for each in await project.pending()}
    return list(found.values())


async def _waiting(sharing: Sequence[ServedProject]) -> Counter[str]:
    """How many questions each run waits for."""
    return Counter(each["run_id"] for each in await _pending(sharing))


async def _questions(project: ServedProject, run: RunRecord) -> dict[str, Any]:
    """What a run waits for, and what was answered by whom."""
    return {
        "here": project.is_active(run.id),
        "questions": await project.pending(run.id),
        "answered": await project.answered(run.id),
    }
