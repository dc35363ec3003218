"""Results of a batch as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen

if TYPE_CHECKING:
    from llm_do.runtime.record.results import ErrorRecord, RunResult
    from llm_do.runtime.record.store.batches import BatchItem

__all__ = ["Line", "line_of_result", "line_reader"]


@frozen
class Line:
    """A result as a line of JSON.

    Args:
        text: The line.
        error: Why the run failed, if it did.
        needed: Entries of the lock that would have allowed what no one could be asked about.
    """

    text: str
    error: ErrorRecord | None = None
    needed: tuple[Mapping[str, Any], ...] = ()


def line_reader() -> Callable[[BatchItem], Line | None]:
    """Create the function that reads a result of the store as a line."""
    from llm_do.durable.input_runs import UNENDED
    from llm_do.runtime.record.redaction import redactor
    from llm_do.runtime.steps.sealed_secrets import Seal

    seal = Seal(redactor().secrets)

    def read(item: BatchItem) -> Line | None:
        if item.result is None or item.status in UNENDED:
            return None
        return _line(item.ordinal, json.loads(seal.open(item.result)))

    return read


def line_of_result(ordinal: int, result: RunResult) -> Line:
    """The line of a run that has just ended."""
    from llm_do.durable.input_runs import failure_of
    from llm_do.text.json_data import to_json_data

    error = None if result.status == "completed" else failure_of(result).to_dict()
    denials = [{"reason": each.reason, "needed": each.needed} for each in result.denials]
    data = {"status": result.status, "output": to_json_data(result.output), "error": error, "denials": denials}
    return _line(ordinal, data)


def _line(ordinal: int, result: Mapping[str, Any]) -> Line:
    """A result as a line: of what is the same in every attempt, so that it doesn't show what was interrupted."""
    from llm_do.durable.input_runs import denial
    from llm_do.runtime.record.redaction import redact_data
    from llm_do.runtime.record.results import ErrorRecord

    status, output, error = result["status"], result["output"], None
    data: dict[str, Any] = {"line": ordinal, "status": status}
    if output is not None or status == "completed":
        data["output"] = output
    denials = result["denials"]
    if status != "completed":
        data["error"] = redact_data(result["error"] or denial(status, [each["reason"] for each in denials]).to_dict())
        error = ErrorRecord(**data["error"])
    needed = tuple(redact_data(dict(each["needed"])) for each in denials if each.get("needed") is not None)
    if needed:
        data["needed"] = needed
    return Line(f"{json.dumps(data, ensure_ascii=False)}\n", error, needed)
