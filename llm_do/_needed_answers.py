"""`NeededAnswer`: what `llm_do.errors.SuspendedError` has of each question that its run waits for."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["NeededAnswer"]


class NeededAnswer(Protocol):
    """A question of a run that waits for a person: what every `llm_do.PendingQuestion` has."""

    @property
    def id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def agent_path(self) -> str: ...
    @property
    def call(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def answers(self) -> tuple[str, ...]: ...
    def to_dict(self) -> dict[str, Any]: ...
