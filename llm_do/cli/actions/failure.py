"""Errors that end a command: the paragraph on stderr, the JSON on stdout if the output is JSON, the exit code."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do._machine_limits import find_limit
from llm_do.cli.process.streams import Results, warn, write_all
from llm_do.errors import EXIT_CODES, LinkError, LlmDoError, Status
from llm_do.ui.reports.error_text import error_text

if TYPE_CHECKING:
    from llm_do.runtime.record.events.event import Event
    from llm_do.runtime.record.results import ErrorRecord

__all__ = [
    "ReportedLinkError",
    "as_llm_do_error",
    "event_record",
    "failed_result",
    "line",
    "print_failure",
    "print_interruption",
    "print_last_words",
    "report",
    "requested_output",
]


class ReportedLinkError(LinkError):
    """A project doesn't link, and what is wrong with it has been shown."""


def requested_output(args: Sequence[str]) -> str:
    """The value of `--format`, or of its synonyms, in arguments that can't be parsed, by default `text`.

    Example:
        >>> requested_output(["run", "--format", "json", "--nonsense"])
        'json'
    """
    found = "text"
    for index, word in enumerate(args):
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if word == "--json":
            found = "json"
        elif option in ("--format", "--output") and (equals or index + 1 < len(args)):
            found = value if equals else args[index + 1]
    return found if args and args[0] in ("run", "chat") else "text"


def status_of(error: BaseException) -> Status:
    """The status of a command that ended with this error before a run had a result."""
    if isinstance(error, LlmDoError):
        return error.status
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


def failed_result(error: BaseException) -> dict[str, Any]:
    """The object that `--format json` prints when there was no run: a run's, with the error in `errors`."""
    from llm_do.runtime.record.results import RunResult

    errors = [] if isinstance(error, KeyboardInterrupt) else _records(error)
    return RunResult(status_of(error), None, "", errors=errors).to_dict()


def event_record(error: BaseException, events: Sequence[Event] = ()) -> dict[str, Any]:
    """The record that `--format events` prints when there was no run, or one that couldn't be ended properly."""
    from llm_do.runtime.record.events.run_events import RunFailedEvent

    records = [record.to_dict() for record in _records(error)]
    first = events[0] if events else None
    event = RunFailedEvent(
        seq=events[-1].seq + 1 if events else 0,
        time=max(time.time(), events[-1].time if events else 0),
        run_id=first.run_id if first else "",
        call_id=first.call_id if first else "",
        parent_call_id=None,
        agent_name=first.agent_name if first else "",
        path=first.path if first else "",
        depth=0,
        status=status_of(error),
        error=records[0],
    )
    return {**event.to_dict(), "errors": records}


def report(error: BaseException, output: str, results: Results, *, debug: bool = False) -> int:
    """Report an error that ends the command, on stderr and in the output's format; returns the exit code."""
    code = print_failure(error, debug=debug)
    results.write_last(line(error, output))
    return code


def print_failure(error: BaseException, *, debug: bool = False) -> int:
    """Report an error on stderr; returns the exit code."""
    if not isinstance(error, KeyboardInterrupt):
        if debug:
            import traceback

            warn("".join(traceback.format_exception(error)))
        if not isinstance(error, ReportedLinkError):
            warn(error_text(error))
    return error.exit_code if isinstance(error, LlmDoError) else EXIT_CODES[status_of(error)]


def line(error: BaseException, output: str) -> str:
    """What stdout gets of an error: a line of JSON, or nothing if the output is text."""
    if output not in ("json", "events"):
        return ""
    return _data_line(failed_result(error) if output == "json" else event_record(error))


def _data_line(data: Mapping[str, Any]) -> str:
    from llm_do.runtime.record.redaction import redactor

    return f"{redactor()(json.dumps(data, ensure_ascii=False))}\n"


def _records(error: BaseException) -> list[ErrorRecord]:
    from llm_do.runtime.record.results import ErrorRecord

    if isinstance(error, LinkError):
        found = [item for item in error.diagnostics if item.severity == "error"]
        if found:
            return [
                ErrorRecord(
                    "LinkError", f"{item.code}: {item.message}", None, item.file, item.line, item.hint, block=item.block
                )
                for item in found
            ]
    if isinstance(error, KeyboardInterrupt):
        return [ErrorRecord("RunInterruptedError", "the run was interrupted")]
    return [ErrorRecord.of(error)]


def as_llm_do_error(error: BaseException) -> BaseException:
    """The error itself if its class is ours, or else one that says what the machine lacks or that llm-do failed."""
    if isinstance(error, LlmDoError):
        return error
    limit = find_limit(error)
    if limit is not None:
        fault = LlmDoError(limit.message, hint=limit.hint)
    else:
        failure = f"llm-do itself failed with {type(error).__name__}: {error}"
        fault = LlmDoError(failure, hint="--debug shows the traceback")
    fault.__cause__ = error
    return fault


def print_interruption(description: str) -> None:
    """Say in one line that a signal ended the command, where no terminal shows it."""
    if not os.isatty(2):
        write_all(2, f"{description}\n")


def print_last_words(output: str, results: Results, description: str, events: Sequence[Event] = ()) -> None:
    """Print the rest of the output in a process that is about to be killed."""
    if output == "events" and events:
        if events[-1].type not in ("run_finished", "run_failed"):
            results.write_last(_data_line(event_record(KeyboardInterrupt(), events)))
    elif output == "text":
        print_interruption(description)
    else:
        report(KeyboardInterrupt(), output, results)
