"""The OpenAPI description of the interface, served at `/api/openapi.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_do import __version__

__all__ = ["DESCRIPTION", "query_names"]


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return {**found, "required": list(required)} if required else found


def _answer(description: str, schema: Mapping[str, Any] | None = None, status: str = "200") -> dict[str, Any]:
    found = {"description": description}
    return {status: found if schema is None else {**found, "content": _json(schema)}}


def _query(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind}}


_RUN = {"name": "run", "in": "path", "required": True, "schema": _text("The run's id, or a prefix that no other has.")}
_THREAD = {"name": "thread", "in": "path", "required": True, "schema": _text("The conversation's id.")}
_QUESTION = {"name": "question", "in": "path", "required": True, "schema": _text("The question's id.")}
_LIMIT = _query("limit", "At most so many.", "integer")
_PROJECT = _query("project", "Only of this project.")
_LIST = {"type": "array", "items": {"type": "object"}}
_ERROR = {"description": "The request is refused.", "content": _json({"$ref": "#/components/schemas/Error"})}
_NOT_FOUND = {"404": {**_ERROR, "description": "There is no such run, or several have ids that begin like that."}}
_QUESTIONS = {"type": "array", "items": {"$ref": "#/components/schemas/Question"}}
_CONTINUES = _object(
    ("run_id", "running", "message"),
    run_id=_text("The run."),
    running={"type": "boolean", "description": "Whether the run continues."},
    message=_text("What becomes of the run."),
)
_BODY_START = _object(
    input={"description": "A text, or the fields of the entry's input; absent for the entry's default."},
    entry=_text("An agent, a flow or a function instead of the project's entry."),
    thread=_text("The conversation to continue or to start."),
    project=_text("The project; by default the first."),
    durable={"type": "boolean", "description": "Whether each of its steps is kept, so that it survives the server."},
)
_BODY_ANSWER = _object(
    ("answer",),
    answer=_text("One of the question's `answers`; if it has none, the text."),
    digest=_text("The `digest` of the question that was shown; an approval is refused without it."),
    note=_text("With `deny`: what the model is to know."),
)


def _operation(summary: str, *parameters: Any, body: Any = None, **responses: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": summary}
    if parameters:
        found["parameters"] = list(parameters)
    if body is not None:
        found["requestBody"] = {"required": True, "content": _json(body)}
    return {**found, "responses": {**responses["answers"], "4XX": _ERROR}}


DESCRIPTION: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "llm-do", "version": __version__, "description": "Runs of llm-do projects: see and make them."},
    "security": [{"key": []}, {"session": []}],
    "paths": {
        "/api/session": {
            "post": {
                **_operation(
                    "Get a cookie for the key, as the page does",
                    body=_object(("key",), key=_text("The key.")),
                    answers=_answer("The cookie is set.", status="204"),
                ),
                "security": [],
            }
        },
        "/api/projects": {
            "get": _operation("List projects", answers=_answer("The projects.", _object(projects=_LIST)))
        },
        "/api/threads": {
            "get": _operation(
                "List conversations", _PROJECT, _LIMIT, answers=_answer("The latest first.", _object(threads=_LIST))
            )
        },
        "/api/threads/{thread}": {
            "get": _operation(
                "Describe a conversation with its latest turns",
                _THREAD,
                _PROJECT,
                _query("user", "Whose it is, for the key of the machine; by default nobody's."),
                _LIMIT,
                answers={
                    **_answer("Its turns, state and settings, and its latest run.", _object(turns=_LIST)),
                    **_NOT_FOUND,
                },
            )
        },
        "/api/questions": {
            "get": _operation(
                "List the questions that runs wait for, also durable ones that no process has",
                _PROJECT,
                answers=_answer("The oldest first.", _object(questions=_QUESTIONS)),
            )
        },
        "/api/compare": {
            "get": _operation(
                "Compare two runs",
                _query("first", "A run."),
                _query("second", "The other run."),
                answers=_answer("Where they diverge, and how each ended.", _object(runs=_LIST)),
            )
        },
        "/api/runs": {
            "get": _operation(
                "List runs",
                _PROJECT,
                _query("status", "Only runs of this status."),
                _query("entry", "Only runs of this entry."),
                _query("thread", "Only runs of this conversation."),
                _LIMIT,
                answers=_answer("The latest first.", _object(runs=_LIST)),
            ),
            "post": _operation(
                "Begin a run",
                body=_BODY_START,
                answers=_answer("It has begun.", _object(("run_id",), run_id=_text("Its id.")), "201"),
            ),
        },
        "/api/runs/{run}": {
            "parameters": [_RUN],
            "get": _operation(
                "Show a run: its events, requests, changed files and questions",
                answers={
                    **_answer("The run.", _object(run={"type": "object"}, events=_LIST, files=_LIST)),
                    **_NOT_FOUND,
                },
            ),
            "delete": _operation("End a run", answers={**_answer("It is ending.", status="202"), **_NOT_FOUND}),
        },
        "/api/runs/{run}/events": {
            "parameters": [_RUN],
            "get": _operation(
                "Follow a run: each event once it is recorded, then `event: end`",
                _query("after", "The number (`seq`) of the last event that is known.", "integer"),
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "description": "The same, as browsers send it.",
                    "schema": {"type": "integer"},
                },
                answers={
                    "200": {"description": "Server-sent events.", "content": {"text/event-stream": {}}},
                    **_NOT_FOUND,
                },
            ),
        },
        "/api/runs/{run}/questions": {
            "parameters": [_RUN],
            "get": _operation(
                "List the questions that a run waits for",
                answers={**_answer("First come first.", _object(questions=_QUESTIONS, answered=_LIST)), **_NOT_FOUND},
            ),
        },
        "/api/runs/{run}/questions/{question}": {
            "parameters": [_RUN, _QUESTION],
            "post": _operation(
                "Answer a question",
                body=_BODY_ANSWER,
                answers={
                    **_answer("It is answered.", _CONTINUES),
                    **_NOT_FOUND,
                    "409": {
                        **_ERROR,
                        "description": "It has been answered (`answered`: by whom, and what), or shows something else.",
                    },
                },
            ),
        },
        "/api/runs/{run}/resume": {
            "parameters": [_RUN],
            "post": _operation(
                "Continue a durable run that was stopped, or that waits, where it stopped",
                body=_object(),
                answers={
                    **_answer("It is running.", _object(("run_id",), run_id=_text("Its id.")), "202"),
                    **_NOT_FOUND,
                    "409": {**_ERROR, "description": "It has ended, is running, or its project has changed."},
                },
            ),
        },
        "/api/runs/{run}/test": {
            "parameters": [_RUN],
            "post": _operation(
                "Save a run as a test of its project, with a recording",
                body=_object(),
                answers={
                    **_answer("It is written.", _object(report=_text("The files, and what came of them.")), "201"),
                    **_NOT_FOUND,
                },
            ),
        },
        "/v1/models": {"get": _operation("List agents, flows and functions as models", answers=_answer("The models."))},
        "/v1/chat/completions": {
            "post": _operation(
                "Run one of them, with the last message as its input",
                body=_object(
                    ("model", "messages"),
                    model=_text("Its name."),
                    messages={**_LIST, "description": "The conversation; the last message is the user's."},
                    stream={"type": "boolean", "description": "Whether the answer comes in pieces."},
                    stream_options=_object(include_usage={"type": "boolean"}),
                ),
                answers=_answer("The answer, as OpenAI's API has it."),
            )
        },
    },
    "components": {
        "securitySchemes": {
            "key": {"type": "http", "scheme": "bearer", "description": "The key that the server printed."},
            "session": {"type": "apiKey", "in": "cookie", "name": "llm_do_PORT"},
        },
        "schemas": {
            "Error": _object(
                ("error",),
                error=_object(
                    ("message",),
                    message=_text("What is wrong."),
                    type=_text("Its kind."),
                    hint=_text("What to do."),
                    answered={
                        "type": ["object", "null"],
                        "description": "Of a question: its `answer`, `by` whom and at what `time`.",
                    },
                ),
            ),
            "Question": _object(
                ("id", "run_id", "kind", "digest", "agent", "answers"),
                id=_text("Its id."),
                run_id=_text("The run that waits."),
                kind=_text(
                    "`approval` of a call, `question` of an agent, or `in_flight`: a call that was running at a kill.",
                    enum=["approval", "question", "in_flight"],
                ),
                durable={"type": "boolean", "description": "Whether it is kept until it is answered."},
                digest=_text("What the answer is bound to; empty for a question of an agent."),
                agent=_text("The call path of the agent."),
                answers={"type": "array", "items": {"type": "string"}, "description": "Empty: any text."},
                tool=_text("The tool."),
                args={"type": "object", "description": "Its arguments."},
                diff={"type": ["string", "null"], "description": "What the call would change."},
                text=_text("What an agent asks."),
            ),
        },
    },
}
"""The description, as OpenAPI 3.1."""


def query_names(path: str, method: str) -> list[str]:
    """The parameters that a request takes behind `?`, as the interface describes them.

    Example:
        >>> query_names("/api/compare", "GET"), query_names("/api/runs", "POST")
        (['first', 'second'], [])
    """
    operation = DESCRIPTION["paths"].get(path, {}).get(method.lower(), {})
    return [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
