"""What a durable run began with, so that it can be started again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.runtime.record.store.unreadable_data import reading
from llm_do.runtime.steps.sealed_secrets import Seal
from llm_do.text.json_data import json_text
from llm_do.text.large_data.conversion import is_large, json_parts

__all__ = ["RunBeginning"]


@frozen
class RunBeginning:
    """What a durable run began with, so that it can be started again.

    Args:
        entry: The name of what it runs; None for the project's own entry.
        input: The input as JSON data.
        messages: The conversation that it was given, in PydanticAI's form; None if that was the thread's.
        toolkits: The states of the conversation's toolkits.
        active: The agent that was in control.
        options: The options that decide what the run does, such as its models, limits and patterns.
        project: The digest of each of the project's files, by path.
        unkept: Why the files aren't kept with the run; empty if they are.
        version: The version of llm-do.
        deps: The type of the dependencies that it was given, which aren't kept; None without any.
    """

    entry: str | None
    input: Any
    messages: list[Any] | None = None
    toolkits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    active: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    project: Mapping[str, str] = field(default_factory=dict[str, str])
    unkept: str = ""
    version: str = ""
    deps: str | None = None

    def _text(self) -> str:
        names = ("entry", "input", "messages", "toolkits", "active", "options", "project", "unkept", "version", "deps")
        data = {name: getattr(self, name) for name in names}
        return "".join(json_parts(data)) if is_large(data) else json_text(data)

    async def sealed(self, seal: Seal) -> str:
        """The beginning as JSON text without its secrets, which `from_text` reads once they are put back."""

        def text() -> str:
            return seal.close(self._text())

        return await run_in_worker(text) if is_large(self.input) or is_large(self.messages) else text()

    @classmethod
    def from_text(cls, text: str) -> RunBeginning:
        """The beginning whose text `sealed` made, with its secrets put back."""
        with reading("what the run began with"):
            return cls(**json.loads(text))
