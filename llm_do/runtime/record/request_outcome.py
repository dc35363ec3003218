"""How one attempt of a model request ended, as a value that can be written, read back, shown and replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

from llm_do._startup.frozen import frozen
from llm_do.errors import LlmDoError
from llm_do.models.connections.answer_bounds import AnswerBoundError, bound_behind
from llm_do.models.providers.failures import error_text, is_transient
from llm_do.models.providers.provider_words import provider_words, short_words, with_status
from llm_do.project.faults import restored_error
from llm_do.runtime.record.results import Usage
from llm_do.text.json_data import to_json_data

__all__ = ["RequestFailure", "RequestOutcome"]


@frozen
class RequestFailure:
    """Why an attempt failed.

    Args:
        type: The error's category in `pydantic_ai.exceptions`; the exception's class name if it has none there.
        message: The provider's message.
        model: The model's name, as its provider knows it.
        transient: Whether the request may succeed when it is made again.
        status_code: The HTTP status, if there was one.
        body: The provider's answer as JSON data.
        retry_after: Seconds the provider asks to wait.
        suggested_model: The model that the provider suggests instead.
        members: The failures of the models that a fallback model tried.
        hint: What to do about it, of an error of llm-do's own, or of an answer that isn't read.
    """

    type: str
    message: str
    model: str = ""
    transient: bool = False
    status_code: int | None = None
    body: Any = None
    retry_after: float | None = None
    suggested_model: str | None = None
    members: tuple[RequestFailure, ...] = ()
    hint: str | None = None

    @classmethod
    def of(cls, error: Exception) -> RequestFailure:
        """The failure that an exception stands for."""
        api = error if isinstance(error, exceptions.ModelAPIError) else None
        http = error if isinstance(error, exceptions.ModelHTTPError) else None
        bound = bound_behind(error)
        group: Sequence[BaseException] = (
            cast("Any", error).exceptions if isinstance(error, exceptions.FallbackExceptionGroup) else ()
        )
        return cls(
            type=_category(error),
            # The cause of a lost connection isn't kept as an exception, so the message has it.
            message=str(bound or error_text(error) or type(error).__name__),
            model=api.model_name if api is not None else "",
            transient=is_transient(error),
            status_code=http.status_code if http is not None else None,
            body=_body_data(api.body) if api is not None else None,
            retry_after=_retry_after(error),
            suggested_model=http.suggested_model_id if http is not None else None,
            members=tuple(cls.of(member) for member in group if isinstance(member, Exception)),
            hint=error.hint if isinstance(error, LlmDoError) else bound.hint if bound is not None else None,
        )

    def exception(self) -> Exception:
        """An exception that means the same, for a failure that was read back."""
        if self.members:
            return exceptions.FallbackExceptionGroup(self.message, [member.exception() for member in self.members])
        # Errors of PydanticAI that name their model may be called as one of ours is.
        own = None if self.model else restored_error(self.type, self.message, hint=self.hint)
        if own is not None:
            return own
        kind: Any = getattr(exceptions, self.type, None)
        if self.status_code is not None:
            return exceptions.ModelHTTPError.for_category(
                None if kind is exceptions.ModelHTTPError else kind,
                status_code=self.status_code,
                model_name=self.model,
                body=self.body,
                suggested_model_id=self.suggested_model,
                retry_after=self.retry_after,
            )
        bound = AnswerBoundError(self.message, hint=self.hint) if self.hint is not None else None
        if isinstance(kind, type) and issubclass(kind, exceptions.ModelAPIError):
            made = kind(self.model, self.message, body=self.body, retry_after=self.retry_after)
            made.__cause__ = bound
            return made
        if bound is not None:
            return bound
        if isinstance(kind, type) and issubclass(kind, exceptions.UnexpectedModelBehavior | exceptions.UserError):
            return kind(self.message)
        if self.transient:
            return exceptions.ModelConnectionError(self.model, self.message)
        return RuntimeError(self.message)

    def __str__(self) -> str:
        """The failure in one line."""
        if self.members:
            return "; ".join(f"{member.model}: {member}" if member.model else str(member) for member in self.members)
        words = provider_words(self.body) or ("" if self.status_code else short_words(self.message))
        return with_status(self.status_code, words)

    def to_dict(self) -> dict[str, Any]:
        """The failure as JSON data, without what is unknown."""
        data: dict[str, Any] = {"type": self.type, "message": self.message, "transient": self.transient}
        known = {
            "model": self.model or None,
            "status_code": self.status_code,
            "body": self.body,
            "retry_after": self.retry_after,
            "suggested_model": self.suggested_model,
            "hint": self.hint,
            "members": [member.to_dict() for member in self.members] or None,
        }
        return data | {name: value for name, value in known.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RequestFailure:
        """The failure that `to_dict` wrote."""
        fields: dict[str, Any] = {**data, "members": tuple(map(cls.from_dict, data.get("members", ())))}
        return cls(**fields)


@frozen
class RequestOutcome:
    """How one attempt ended: with a response, or with a failure.

    Args:
        usage: What it used; a failed attempt counts as a request.
        response: The model's response.
        failure: Why there is no response.
        cause: The exception of a failure that has just happened; it isn't written.
    """

    usage: Usage
    response: ModelResponse | None = None
    failure: RequestFailure | None = None
    cause: Exception | None = field(default=None, repr=False)

    def result(self) -> ModelResponse:
        """The response; raises the failure's exception if there is none."""
        if self.response is None:
            raise self.error()
        return self.response

    def error(self) -> Exception:
        """The exception of a failed attempt: the original one, or one that means the same."""
        assert self.failure is not None
        return self.cause or self.failure.exception()

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON data that `from_dict` reads back."""
        response = None
        if self.response is not None:
            response = ModelMessagesTypeAdapter.dump_python([self.response], mode="json")[0]
        failure = self.failure.to_dict() if self.failure is not None else None
        return {"usage": self.usage.to_dict(), "response": response, "failure": failure}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RequestOutcome:
        """Return the outcome that `to_dict` wrote."""
        response: Any = ModelMessagesTypeAdapter.validate_python([data["response"]])[0] if data["response"] else None
        failure = RequestFailure.from_dict(data["failure"]) if data["failure"] else None
        return cls(Usage.from_dict(data["usage"]), response, failure)


def _category(error: Exception) -> str:
    """The most special of PydanticAI's own classes that an error is, apart from that of HTTP errors."""
    names = [kind.__name__ for kind in type(error).__mro__ if getattr(exceptions, kind.__name__, None) is kind]
    special = [name for name in names if name != "ModelHTTPError" and not name.startswith("_")]
    if isinstance(error, exceptions.ModelHTTPError) and special[:1] == ["ModelAPIError"]:
        return "ModelHTTPError"
    return special[0] if special else type(error).__name__


def _body_data(body: object) -> object:
    """Return an error's body as data; of one that is nested too deeply for that, its words."""
    try:
        return to_json_data(body)
    except (ValueError, RecursionError):
        return provider_words(body)


def _retry_after(error: Exception) -> float | None:
    """Seconds that the provider asks to wait; fractions too, which the standard lacks and servers send.

    Of several models the first that can be asked again counts.
    """
    if isinstance(error, exceptions.FallbackExceptionGroup):
        waits = [_retry_after(member) for member in cast("Any", error).exceptions if isinstance(member, Exception)]
        return min((wait for wait in waits if wait is not None), default=None)
    if not isinstance(error, exceptions.ModelAPIError) or error.retry_after is not None:
        return getattr(error, "retry_after", None)
    headers = error.headers if isinstance(error, exceptions.ModelHTTPError) else None
    try:
        seconds = float((headers or {}).get("retry-after", "nan"))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
