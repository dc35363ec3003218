"""An exception as text, whatever its own `__str__` does."""

from __future__ import annotations

__all__ = ["exception_text"]

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
