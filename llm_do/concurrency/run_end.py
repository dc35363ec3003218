"""What ends a run from inside a project's code, and telling it from that code's own failures.

A `KeyboardInterrupt` that passed an event loop's task would take the loop down, and the run's record with it; a
`CancelledError` may be that of something which the code has waited for, nobody having cancelled the run. So every place
that calls a project's code and catches what it raises asks `reraise_if_cancelled` first.
"""

from __future__ import annotations

import asyncio

from llm_do.concurrency.event_loops import is_being_cancelled
from llm_do.errors import RunInterruptedError, error_text

__all__ = ["RunEndSignal", "reraise_if_cancelled"]


class RunEndSignal(BaseException):
    """Carries what ends the whole run to its root, through code that catches every `Exception`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error_text(error))
        self.error = error


def reraise_if_cancelled(error: BaseException) -> None:
    """Raise what isn't the failure of the code that raised it; to be called while it is handled.

    Example:
        >>> reraise_if_cancelled(ValueError("the code's own"))
    """
    if isinstance(error, KeyboardInterrupt):
        interrupted = RunInterruptedError(
            f"the run was interrupted: its code raised {error_text(error)}",
            hint="Code ends a call by raising an `Exception`. --debug shows the traceback.",
        )
        interrupted.__cause__ = error
        raise RunEndSignal(interrupted) from error
    if isinstance(error, RunEndSignal | GeneratorExit) or (
        isinstance(error, asyncio.CancelledError) and is_being_cancelled()
    ):
        raise error
