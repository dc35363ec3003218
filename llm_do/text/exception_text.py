"""An exception as text, whatever its own `__str__` does."""

from __future__ import annotations

__all__ = ["exception_text", "first_fault"]

_MOST = 500_000
"""Characters of a message: whatever handles it takes no more than a moment."""


def exception_text(error: BaseException) -> str:
    """An exception's class and message, the beginning of a very long one, even if its own `__str__` fails.

    Args:
        error: The exception.

    Example:
        >>> exception_text(ValueError("too small")), exception_text(ValueError())
        ('ValueError: too small', 'ValueError')
    """
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 (whatever its own code does, there is something to tell)
        message = "(it can't be shown)"
    if len(message) > _MOST:
        message = f"{message[:_MOST]} ({len(message) - _MOST:,} more characters)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def first_fault(error: BaseException) -> str:
    """What an error says in one line; of pydantic's, the first fault and where it is, without its own notation.

    Args:
        error: The exception.

    Example:
        >>> from pydantic import TypeAdapter
        >>> try:
        ...     TypeAdapter(dict[str, int]).validate_python({"n": "x"})
        ... except ValueError as error:
        ...     first_fault(error)
        'n: Input should be a valid integer, unable to parse string as an integer'
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
