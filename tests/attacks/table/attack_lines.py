"""The attacks, as the text files beside this one list them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Attack", "Step", "read_attacks"]

_SECONDS = 8.0


@dataclass(frozen=True)
class Step:
    """One call of a tool."""

    tool: str
    args: Mapping[str, Any]


@dataclass
class Attack:
    """Calls in a row, the line they are listed at, and what they are after: to change, read, send, run or leave."""

    line: str
    after: str
    steps: list[Step] = field(default_factory=list[Step])


def read_attacks(name: str) -> Sequence[Attack]:
    """Return the attacks of a list."""
    found: list[Attack] = []
    for number, line in enumerate((Path(__file__).parent / f"{name}.txt").read_text("utf-8").split("\n"), start=1):
        if line.startswith("+ "):
            found[-1].steps.append(_step(line[2:]))
        elif line and not line.startswith("#"):
            after, _, call = line.partition(" | ")
            found.append(Attack(f"{name}.txt:{number}: {call}", after.strip(), [_step(call)]))
    return found


def _step(text: str) -> Step:
    tool, _, args = text.removeprefix("!").partition(" ")
    if not text.startswith("!"):
        return Step("shell", {"command": text, "timeout": _SECONDS})
    return Step(tool, {"timeout": _SECONDS, **json.loads(args)} if tool == "shell" else json.loads(args))
