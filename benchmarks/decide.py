"""The processor time of one decision, and of parsing one rule."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.measure import Figure
from llm_do.policy.decision import decide
from llm_do.policy.proposals import narrowest_rule
from llm_do.policy.rules import build_policy
from llm_do.policy.values import ToolCallInfo

RULES = 50
TARGET_US = 100.0


def micros(action: Callable[[], object], *, seconds: float = 0.3) -> float:
    """Return the minimum processor time of an action in microseconds, measured over about this many seconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time_ns()
        for _ in range(200):
            action()
        best = min(best, (time.process_time_ns() - start) / 200 / 1000)
    return best


def approvals(count: int) -> dict[str, object]:
    """Build this many rules, half of them for the shell, spread over the three effects."""
    shapes = ("shell(tool{n} run *)", "write_file(area{n}/**/*.md)", "shell(git sub{n} --flag *)", "fn{n}(to=*@x.org)")
    texts = [shapes[number % 4].format(n=number) for number in range(count)]
    return {"deny": texts[::3], "ask": texts[1::3], "allow": texts[2::3]}


def command(*stages: str) -> ToolCallInfo:
    """Build a shell call with these commands in a pipeline."""
    resolved = {"command": tuple(tuple(stage.split()) for stage in stages)}
    return ToolCallInfo("shell", {"command": " | ".join(stages)}, primary="command", resolved=resolved)


def main() -> list[Figure]:
    """Measure decisions among fifty rules, none of which matches, and parsing one rule."""
    policy, faults = build_policy(approvals(RULES))
    assert not faults
    path = "area1/a/b/c/d/notes.txt"
    calls = {
        "a function": ToolCallInfo("fn9999", {"to": "ann@example.org"}),
        "a file": ToolCallInfo("write_file", {"path": path}, primary="path", resolved={"path": path}),
        "a command": command("git log --oneline -3 HEAD"),
        "a pipeline of three": command("git log --oneline", "grep -v fix", "head -3"),
        "a wrapped command": command("env A=1 timeout 5 sh -c script with many words here"),
    }
    figures = [
        Figure(
            f"decision about {name}, {RULES} rules", micros(lambda call=call: decide(call, policy)), TARGET_US, " us"
        )
        for name, call in calls.items()
    ]
    read = micros(lambda: build_policy(approvals(100))) / 100
    hint = micros(lambda: narrowest_rule(calls["a file"]))
    return [*figures, Figure("reading one rule", read, unit=" us"), Figure("the rule for a call", hint, unit=" us")]
