"""The outcome of a model request attempt survives a round trip through JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import exceptions
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from llm_do.models.connections.answer_bounds import AnswerBoundError
from llm_do.models.providers.failures import explain_failure, is_transient, unread_answer
from llm_do.runtime.record.request_outcome import RequestFailure, RequestOutcome
from llm_do.runtime.record.results import Usage
from tests.support.tables import each_row


def reread(outcome: RequestOutcome) -> RequestOutcome:
    return RequestOutcome.from_dict(json.loads(json.dumps(outcome.to_dict())))


def failed(error: Exception) -> RequestOutcome:
    return RequestOutcome(Usage(requests=1), failure=RequestFailure.of(error), cause=error)


def http(status: int, category: Any = None, **fields: Any) -> Exception:
    body = {"error": {"message": f"status {status}"}}
    return exceptions.ModelHTTPError.for_category(
        category, status_code=status, model_name="m", body=body, headers={"retry-after": "0.5"}, **fields
    )


def test_a_response_round_trips() -> None:
    response = ModelResponse([TextPart("hi"), ToolCallPart("add", {"a": 1}, "call_1")], model_name="m")
    outcome = RequestOutcome(Usage(requests=1, input_tokens=3, output_tokens=2, cost_usd=0.5), response)

    assert reread(outcome) == outcome
    assert reread(outcome).result() == response


FAILURES = [
    http(429, exceptions.ModelRateLimitError),
    http(503, exceptions.ModelUnavailableError),
    http(529, exceptions.ModelOverloadedError),
    http(500, exceptions.ModelServerError),
    http(401, exceptions.ModelAuthenticationError),
    http(404, exceptions.ModelNotFoundError, suggested_model_id="mm"),
    http(400),
    http(408),
    exceptions.ModelConnectionError("m", "reset by peer"),
    exceptions.ModelTimeoutError("m", "too slow"),
    exceptions.ModelAPIError("m", "the answer broke off"),
    exceptions.ModelQuotaExceededError("m", "no money left", body={"message": "pay"}),
    exceptions.UnexpectedModelBehavior("no sense"),
    exceptions.UserError("no such setting"),
    exceptions.FallbackExceptionGroup("all failed", [http(503), exceptions.ModelTimeoutError("m", "too slow")]),
    ConnectionError("refused"),
    ValueError("a fault of the model's own code"),
]


@each_row("error", FAILURES)
def test_a_failure_round_trips_and_raises_the_same_error(error: Exception) -> None:
    again = reread(failed(error)).failure

    assert again is not None
    assert again == RequestFailure.of(error)
    rebuilt = again.exception()
    assert RequestFailure.of(rebuilt).transient == again.transient == is_transient(error) == is_transient(rebuilt)
    assert explain_failure(rebuilt, "openai:m").message in (
        explain_failure(error, "openai:m").message,
        f"the request to 'openai:m' failed: {type(error).__name__}: {error}",
    )


def behind(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


UNREAD = [
    AnswerBoundError("the answer is too long"),
    behind(exceptions.ModelConnectionError("m", "no connection"), AnswerBoundError("it is elsewhere", hint="go there")),
    unread_answer(TypeError("'int' object is not iterable"), "openai:m"),
]


@each_row("error", UNREAD)
def test_an_answer_that_is_not_read_keeps_what_to_do_about_it(error: Exception) -> None:
    kept = reread(failed(error)).failure

    assert kept is not None
    was, now = (explain_failure(each, "openai:m") for each in (error, kept.exception()))
    assert (now.message, now.hint) == (was.message, was.hint)
    assert was.hint
    assert not is_transient(kept.exception())


def test_an_error_of_a_projects_own_model_is_no_unread_answer() -> None:
    assert unread_answer(TypeError("a mistake"), "mine:m") is None


def test_a_failure_is_shown_in_one_line() -> None:
    assert str(RequestFailure.of(http(429))) == "HTTP 429: status 429"
    assert str(RequestFailure.of(exceptions.ModelConnectionError("m", "reset\nby peer"))) == "reset by peer"


def test_a_failed_attempt_raises_its_original_exception() -> None:
    error = http(500)

    with pytest.raises(exceptions.ModelHTTPError) as raised:
        failed(error).result()
    assert raised.value is error
