"""What `llm-do approvals replay` does: read the recorded calls, and decide about them again by these rules.

`replay_data` runs where the project is linked. It makes no call, and asks no policy function.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from llm_do.cli.actions.project_store import existing_store
from llm_do.errors import UsageError
from llm_do.formats.parts.permissions import ApprovalsFile
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.formats.validation.validator import validate
from llm_do.linker.proofs.policy_replay import RecordedCall, Replayed, Replayer, Then
from llm_do.linker.proofs.rule_proposals import propose_rules
from llm_do.linker.sources.project_root import locate_project
from llm_do.policy.proofs import check_examples
from llm_do.policy.rules import Policy, build_policy
from llm_do.project.project import Project
from llm_do.runtime.record.run_names import named_run
from llm_do.runtime.record.stored_records import Filter, Observation, RunFilter

__all__ = ["read_rules", "recorded_calls", "replay_data"]

_TYPES = ("tool_call", "tool_result", "approval_requested", "approval_resolved")

_MOST_RUNS = 100_000


def replay_data(
    project: Project,
    rules: str | None = None,
    since: float | None = None,
    run: str | None = None,
    place: str | None = None,
) -> dict[str, Any]:
    """Replay the recorded calls of a project's store by the rules of a file, or by the project's own."""
    policy, warnings = read_rules(Path(rules), project) if rules is not None else (project.policy, [])
    found, unread = asyncio.run(_read(project, since, run, place))
    replayer = Replayer(project, policy)
    replayed = [replayer.replay(call) for call in found]
    return {
        "calls": len(replayed),
        "runs": len({call.run for call in found}),
        "unreadable": unread,
        "rules": rules or "the project's own",
        "then": dict(Counter(each.call.then for each in replayed)),
        "now": dict(Counter(each.now for each in replayed)),
        "differences": _grouped(each for each in replayed if each.differs),
        "unknown": _reasons(each for each in replayed if each.now == "unknown"),
        "proposals": [{"spared": each.spared, "entry": each.entry()} for each in propose_rules(replayed)],
        "warnings": warnings,
    }


async def _read(
    project: Project, since: float | None, run: str | None, place: str | None
) -> tuple[list[RecordedCall], int]:
    store = existing_store(replace(locate_project(project.manifest or project.root), env_file=project.env_file), place)
    try:
        run_id = None
        if run is not None:
            run_id = (await named_run(store, run)).id
        recorded = await store.observations(Filter(run_id=run_id, types=_TYPES))
        if since is None:
            return recorded_calls(recorded)
        runs = {each.id for each in await store.runs(filter=RunFilter(since=since), limit=_MOST_RUNS)}
        return recorded_calls(each for each in recorded if each.run_id in runs)
    finally:
        await store.aclose()


def recorded_calls(events: Iterable[Observation]) -> tuple[list[RecordedCall], int]:
    """Return the decided calls among events in their order, and how many events can't be read."""
    calls: dict[tuple[str, str, str], RecordedCall] = {}
    decided: dict[tuple[str, str, str], Then | None] = {}
    rules: dict[tuple[str, str, str], str | None] = {}
    unread = 0
    for event in events:
        data = event.data
        ids = data.get("call_id"), data.get("tool_call_id")
        names = data.get("agent_name"), data.get("path"), data.get("tool_name")
        if not all(isinstance(each, str) for each in (*ids, *names)):
            unread += 1
            continue
        key = (event.run_id, str(ids[0]), str(ids[1]))
        if event.type == "tool_call":
            args = data.get("args")
            known = cast("Mapping[str, Any]", args) if isinstance(args, dict) else None
            calls[key] = RecordedCall(event.run_id, str(names[0]), str(names[1]), str(names[2]), known, "allowed")
        elif event.type == "approval_requested":
            rule = data.get("rule")
            rules[key] = rule if isinstance(rule, str) else None
            args = data.get("args")
            if key in calls and isinstance(args, dict):  # as they were validated
                calls[key] = replace(calls[key], args=args)
        elif event.type == "approval_resolved":
            by, effect = data.get("by"), data.get("decision")
            if by in ("person", "remembered", "option", "mode"):
                decided[key] = "approved" if effect == "allow" else "rejected"
            else:
                decided[key] = None  # no one decided
        else:
            status = data.get("status")
            if status == "denied":
                decided.setdefault(key, "denied")
            elif status in ("success", "failed", "timed_out"):
                decided.setdefault(key, "allowed")
    found = [
        replace(call, then=then, rule=rules.get(key))
        for key, call in calls.items()
        if (then := decided.get(key)) is not None
    ]
    return found, unread


def read_rules(path: Path, project: Project) -> tuple[Policy, list[str]]:
    """Read rules from a JSON file: a manifest, or the value of its `approvals`; return warnings, too.

    Raises:
        UsageError: The file can't be read, or a rule in it can't.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} can't be read: {reason}", hint="Name a JSON file with rules.") from error
    parsed = parse_json(text, str(path))
    node = parsed.node
    if node is not None and node.kind == "mapping" and "approvals" in node.entries:
        parsed = replace(parsed, node=node.entries["approvals"])
    value, faults = validate(ApprovalsFile, parsed)
    if value is None or any(item.severity == "error" for item in faults):
        first = next(iter(faults), None)
        message = f"{first.place}: {first.message}" if first is not None else f"{path} has no rules"
        hint = (first.hint if first is not None else None) or 'Write {"allow": [...], "ask": [...], "deny": [...]}.'
        raise UsageError(message, hint=hint)
    policy, wrong = build_policy(value.model_dump(exclude_unset=True), lambda at: _line(parsed.node, at, path))
    for fault in wrong:
        raise UsageError(f"{_line(parsed.node, fault.path, path)}: {fault.message}", hint=fault.hint)
    tools = {name: tool.facts for (_, name), tool in Replayer(project, policy).tools.items()}
    warnings: list[str] = []
    for rule in policy.rules:
        facts = [
            each for name, each in tools.items() if rule.pattern.action is None and rule.pattern.tool.matches(name)
        ]
        if rule.pattern.action is None and not facts:
            warnings.append(f"the rule {rule.text} matches no tool of the project that is known before a run")
        warnings += [fault.message for fault in check_examples(rule, facts)]
    return policy, warnings


def _line(node: Any, at: Sequence[str | int], path: Path) -> str:
    place = node.place_of(tuple(at[1:])) if node is not None else None
    return f"{path}:{place.line}" if place is not None else str(path)


def _grouped(replayed: Iterable[Replayed]) -> list[dict[str, Any]]:
    """Differences by what changes and why, the most frequent first, each with an example."""
    groups: dict[tuple[str, ...], list[Replayed]] = {}
    for each in replayed:
        key = (each.call.then, each.now, each.call.path, each.call.tool, each.rule or "")
        groups.setdefault(key, []).append(each)
    return [
        {
            "calls": len(group),
            "then": group[0].call.then,
            "now": group[0].now,
            "path": group[0].call.path,
            "tool": group[0].call.tool,
            "rule": group[0].rule,
            "reason": group[0].reason,
            "example": {"run": group[0].call.run, "args": dict(group[0].call.args or {})},
        }
        for group in sorted(groups.values(), key=len, reverse=True)
    ]


def _reasons(replayed: Iterable[Replayed]) -> list[dict[str, Any]]:
    counts = Counter((each.call.path, each.call.tool, each.reason) for each in replayed)
    return [
        {"calls": count, "path": path, "tool": tool, "reason": reason}
        for (path, tool, reason), count in counts.most_common()
    ]
