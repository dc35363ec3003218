"""Convert a provider's failure to an llm-do error with a clear message, and tell which failures are transient."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError as ProviderUnavailableError,
    RunCancelled,
)
from pydantic_core import ValidationError

from llm_do.errors import ModelError, ModelUnavailableError, ProviderError
from llm_do.models.connections.answer_bounds import AnswerBoundError, bound_behind
from llm_do.models.providers.model_names import PROVIDERS, split_name
from llm_do.models.providers.provider_words import provider_words, short_words, with_status

__all__ = ["error_text", "explain_failure", "is_transient", "unread_answer"]

TRANSIENT = (
    ModelConnectionError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ProviderUnavailableError,
    ConnectionError,
    TimeoutError,
)
PERMANENT = (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    RunCancelled,
)
RESPONSES = ("openai", "openai-responses")
"""Providers whose models are asked by the Responses API."""

UNREAD = (AttributeError, TypeError, LookupError, AssertionError, ValidationError)
"""What a library raises that reads an answer whose parts are none of its protocol's."""

CONNECTION_ERRORS = ("TransportError", "APIConnectionError")
"""Class names of connection errors in the HTTP clients and the providers' libraries, in any version."""


def is_transient(error: BaseException) -> bool:
    """Whether a request that failed with this error may succeed if it is retried."""
    if isinstance(error, FallbackExceptionGroup):
        return any(is_transient(member) for member in error.exceptions)
    if bound_behind(error) is not None:
        return False
    if type(error) is ModelAPIError:  # without a category: the response was interrupted
        return True
    if isinstance(error, PERMANENT):
        return False
    if isinstance(error, ModelHTTPError) and (error.status_code in (408, 409, 425, 429) or error.status_code >= 500):
        return True
    # An interrupted stream may raise the HTTP client's own error.
    return isinstance(error, TRANSIENT) or any(base.__name__ in CONNECTION_ERRORS for base in type(error).__mro__)


def explain_failure(
    error: Exception, model: str | Sequence[str], *, agent: str = "", file: str | None = None
) -> ModelError:
    """Convert the error of a failed request."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, FallbackExceptionGroup):
        members = [member for member in error.exceptions if isinstance(member, Exception)]
        failures = [explain_failure(member, model, agent=agent, file=file) for member in members]
        return _provider_error(
            "; ".join(failure.message for failure in failures), failures[-1] if failures else None, file
        )
    model = _name_of(error, [model] if isinstance(model, str) else model)
    whose = f" for agent {agent!r}" if agent else ""
    message = _provider_message(error)
    if _lacks_responses(error, model, message):
        return ModelUnavailableError(
            f"the server of the model {model!r}{whose} has no Responses API: {message}",
            hint=f"name it `openai-chat:{split_name(model)[1]}`",
            file=file,
        )
    keys = PROVIDERS[split_name(model)[0]].keys if split_name(model)[0] in PROVIDERS else ()
    if isinstance(error, ModelNotFoundError):
        suggested = error.suggested_model_id if isinstance(error, ModelHTTPError) else None
        return ModelUnavailableError(
            f"there is no model {model!r}{whose}: {message}",
            hint=f"did you mean `{suggested}`?" if suggested else "name another model",
            file=file,
        )
    if isinstance(error, ModelAuthenticationError):
        return ModelUnavailableError(
            f"the provider of {model!r}{whose} refused the key: {message}",
            hint=f"check {' or '.join(keys)}" if keys else "check the provider's credentials",
            file=file,
        )
    failed = ProviderError(f"the request to {model!r}{whose} failed: {message}", hint=_hint(error))
    failed.file = file
    failed.status_code = error.status_code if isinstance(error, ModelHTTPError) else None
    return failed


def unread_answer(error: Exception, model: str | Sequence[str]) -> AnswerBoundError | None:
    """The error of an answer that a provider's library couldn't read, if that is what it has raised.

    A project's own model raises such errors where its code is wrong.
    """
    names = [model] if isinstance(model, str) else model
    if not isinstance(error, UNREAD) or not all(split_name(name)[0] in PROVIDERS for name in names):
        return None
    unread = AnswerBoundError(
        short_words(error_text(error)),
        hint="its answer may be none of its protocol: see what the server at this address sends",
    )
    unread.__cause__ = error
    return unread


def _name_of(error: Exception, names: Sequence[str]) -> str:
    """Return the name of the model that failed, of several that were tried."""
    if len(names) == 1:
        return names[0]
    own = error.model_name if isinstance(error, ModelAPIError) else ""
    return next((name for name in names if split_name(name)[1] == own), own or " or ".join(names))


def _provider_error(message: str, last: ModelError | None, file: str | None) -> ProviderError:
    failed = ProviderError(
        f"every model failed: {message}",
        hint=last.hint if last else None,
        status_code=last.status_code if isinstance(last, ProviderError) else None,
    )
    failed.file = file
    return failed


def _lacks_responses(error: Exception, model: str, message: str) -> bool:
    """Whether a server knows no Responses API, which most that speak OpenAI's chat protocol don't."""
    prefix, name = split_name(model)
    if (
        prefix not in RESPONSES
        or not isinstance(error, ModelAPIError)
        or error.provider_error_code == "model_not_found"
    ):
        return False
    words = message.lower()
    if isinstance(error, ModelHTTPError):
        return error.status_code in (404, 405, 501) and "model" not in words.replace(name.lower(), "")
    return "unexpected endpoint" in words


def _hint(error: Exception) -> str | None:
    if bound := bound_behind(error):
        return bound.hint
    if isinstance(error, ModelTimeoutError):
        return "the provider did not answer in time; raise `timeout` in `model_settings`"
    if isinstance(error, ModelConnectionError):
        return "check the address, the network and the proxy variables in the environment"
    if isinstance(error, ModelRateLimitError):
        return "wait, or raise `max_retries`"
    return None


def _provider_message(error: Exception) -> str:
    """Return the provider's message on one line, after the HTTP status if there is one."""
    if bound := bound_behind(error):
        return bound.message
    body: object = error.body if isinstance(error, ModelAPIError) else None
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    words = provider_words(body) or ("" if status else short_words(error_text(error)))
    return with_status(status, words) or type(error).__name__


def error_text(error: Exception) -> str:
    """An error's text, and for a lost connection the reason, which clients keep in the exceptions behind it."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_input=False, include_context=False)[:3]
        return "; ".join(".".join([error.title, *map(str, fault["loc"])]) + f": {fault['msg']}" for fault in faults)
    if isinstance(error, UNREAD):
        return f"{type(error).__name__}: {error}"
    if not isinstance(error, ModelConnectionError):
        return str(error)
    cause: BaseException | None = error
    texts: list[str] = []
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    reason = next((text for text in reversed(texts) if text and text != texts[0]), "")
    return f"{texts[0].removesuffix('.')}: {reason}" if reason else texts[0]
