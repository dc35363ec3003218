"""`Rehearsal`: a run that stops just before its end and is replayed at once, to find what isn't the same twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm_do.text.text_diff import text_diff

if TYPE_CHECKING:
    from llm_do.runtime.record.sent_request import SentRequest

__all__ = ["Rehearsal"]


@dataclass(slots=True, eq=False)
class Rehearsal:
    """What a run leaves for its replay, so that this can say what differs.

    Args:
        replays: Whether the run has come to its end, so that what follows is its replay, where nothing new may begin.
        cancelled: Whether some of its calls were cancelled, which may have been about to do anything.
        patience: Seconds without any progress after which what such a call is about to do counts as new.
        sent: The requests, by the keys of their steps.
        inputs: The calls from Python: ids and inputs by caller and name.
    """

    replays: bool = False
    cancelled: bool = False
    patience: float = 5.0
    sent: dict[str, SentRequest] = field(default_factory=dict[str, "SentRequest"])
    inputs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict[tuple[str, str], dict[str, Any]])

    def note_call(self, parent: str, name: str, call_id: str, input: object) -> None:
        """Note a call from Python."""
        if not self.replays:
            self.inputs.setdefault((parent, name), {})[call_id] = input
        else:
            self.inputs.get((parent, name), {}).pop(call_id, None)

    def explain_call(self, parent: str, name: str, input: object) -> tuple[str, str | None]:
        """What is new about a call that the run didn't make, as a predicate, and the difference as a diff."""
        made = self.inputs.get((parent, name))
        if not made:
            return f"calls {name}, which it didn't before", None
        before = next(iter(made.values()))
        return f"calls {name} with another input than before", "\n".join(text_diff(before, input, "run", "replay"))
