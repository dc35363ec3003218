"""Distinguish exceptions that end a run from the failures of a project's code.

A `KeyboardInterrupt` that escapes a task would stop its event loop, and the run's record would be lost. A
`CancelledError` may come from something that the code awaited, although the run itself wasn't cancelled. So every place
that catches the exceptions of a project's code calls `reraise_if_cancelled` first.
"""

from __future__ import annotations

import asyncio

from llm_do.concurrency.event_loops import is_being_cancelled
from llm_do.errors import RunInterruptedError
from llm_do.text.exception_text import exception_text

__all__ = ["RunEndSignal", "reraise_if_cancelled"]


class RunEndSignal(BaseException):
    """Carries the error that ends a run to its root, through code that catches every `Exception`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(exception_text(error))
        self.error = error


def reraise_if_cancelled(error: BaseException) -> None:
    """Re-raise an error that ends the run; call this in the `except` block that caught it.

    Example:
        >>> reraise_if_cancelled(ValueError("the code's own"))
    """
    if isinstance(error, KeyboardInterrupt):
        interrupted = RunInterruptedError(
            f"the run was interrupted: its code raised {exception_text(error)}",
            hint="Code ends a call by raising an `Exception`. --debug shows the traceback.",
        )
        interrupted.__cause__ = error
        raise RunEndSignal(interrupted) from error
    if isinstance(error, RunEndSignal | GeneratorExit) or (
        isinstance(error, asyncio.CancelledError) and is_being_cancelled()
    ):
        raise error
