"""What is read of a request: its body, its parameters, its user. Whatever is wrong with them is a `BadRequestError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from llm_do.text.strict_json import parse_strictly

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["BadRequestError", "check_query", "flag_of", "json_body", "number_of", "text_of", "user_of"]


_LONGEST_NUMBER = 9


class BadRequestError(Exception):
    """A request can't be carried out; a program reads why.

    Args:
        message: What is wrong with it.
        status_code: The status of the response.
        hint: What to do about it.
        more: Further fields of the error.
    """

    def __init__(
        self,
        message: str,
        status_code: int = 422,
        *,
        hint: str | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.hint = hint
        self.more = more or {}


async def json_body(request: Request, *known: str) -> dict[str, Any]:
    """Return the JSON object of a request, which has these fields only; any if none are named.

    Raises:
        BadRequestError: It isn't one.
    """
    try:
        body = parse_strictly((await request.body()).decode())
    except (ValueError, RecursionError) as error:
        why = f": {error}" if type(error) is ValueError else ""
        raise BadRequestError(f"the body is no JSON{why}", 400) from None
    if not isinstance(body, dict):
        raise BadRequestError("the body has to be a JSON object")
    found = cast("dict[str, Any]", body)
    unknown = [name for name in found if known and name not in known]
    if unknown:
        raise BadRequestError(f"there is no field {unknown[0]!r}; fields are {', '.join(known)}")
    return found


def text_of(body: dict[str, Any], name: str) -> str | None:
    """Return a field that is a text, or None if it is absent.

    Raises:
        BadRequestError: It is something else, or empty.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise BadRequestError(f"`{name}` has to be a text")
    return value


def flag_of(body: dict[str, Any], name: str) -> bool:
    """Return a field that is true or false; False if it is absent.

    Raises:
        BadRequestError: It is something else.
    """
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise BadRequestError(f"`{name}` has to be true or false")
    return value


def check_query(request: Request, known: Sequence[str]) -> None:
    """Raise for a parameter that isn't known.

    Raises:
        BadRequestError: There is one.
    """
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        takes = f"parameters are {', '.join(known)}" if known else "this request takes none"
        raise BadRequestError(f"there is no parameter {unknown[0]!r}; {takes}")


def number_of(request: Request, name: str, default: int, most: int) -> int:
    """Return a parameter that is a number from 1 to `most`.

    Raises:
        BadRequestError: It isn't.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > _LONGEST_NUMBER or not 1 <= int(text) <= most:
        raise BadRequestError(f"`{name}` has to be a number from 1 to {most}")
    return int(text)


def user_of(request: Request) -> str | None:
    """Return the user that the request's key belongs to."""
    return request.scope.get("llm_do.user")
