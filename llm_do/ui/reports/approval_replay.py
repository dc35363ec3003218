"""What `llm-do approvals replay` prints: what other rules would have decided, and which rules would spare questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from llm_do.text.sanitizer import sanitize
from llm_do.text.words import with_count
from llm_do.ui.terminal.screen import paint
from llm_do.ui.terminal.text_width import shorten_middle

__all__ = ["replay_lines"]

_MOST = 20
"""The most differences to list."""

_THEN = {"allowed": "ran unasked", "approved": "asked, allowed", "rejected": "asked, denied", "denied": "denied"}
_NOW = {"allow": "allowed", "ask": "asked about", "deny": "denied", "unknown": "unknown"}
_STYLES = {"allow": "good", "ask": "warn", "deny": "bad", "unknown": "quiet"}


def replay_lines(data: Mapping[str, Any], *, color: bool = False) -> Iterator[str]:
    """The replay as text."""

    def quiet(text: str) -> str:
        return paint(sanitize(text), "quiet", color=color)

    yield f"{with_count(data['calls'], 'call')} of {with_count(data['runs'], 'run')}, by {sanitize(data['rules'])}"
    if data["unreadable"]:
        yield quiet(f"  {with_count(data['unreadable'], 'event')} of the record can't be read")
    for name, title in _NOW.items():
        if data["now"].get(name):
            yield f"  {data['now'][name]:>7,}  {paint(title, _STYLES[name], color=color)}"
    then = [f"{count:,} {_THEN[name]}" for name, count in data["then"].items()]
    if then:
        yield quiet(f"  when they were made: {'; '.join(then)}")
    if data["differences"]:
        yield ""
        yield "what would have been different"
    for each in data["differences"][:_MOST]:
        change = f"{_THEN[each['then']]} -> {paint(_NOW[each['now']], _STYLES[each['now']], color=color)}"
        by = f"by {each['rule']}" if each["rule"] else each["reason"]
        yield f"  {each['calls']:>7,}  {change}  {sanitize(each['path'])} {sanitize(_example(each))}  {quiet(by)}"
    if len(data["differences"]) > _MOST:
        yield quiet(f"  and {len(data['differences']) - _MOST} kinds more (--format json has all)")
    for each in data["unknown"][:_MOST]:
        yield quiet(f"  {each['calls']:>7,}  unknown: {each['path']} {each['tool']}, as {each['reason']}")
    if data["proposals"]:
        yield ""
        yield "rules that would have spared the most questions, for approvals.allow"
    for number, each in enumerate(data["proposals"]):
        comma = "," if number < len(data["proposals"]) - 1 else ""
        lines = json.dumps(each["entry"], ensure_ascii=False, indent=2).split("\n")
        yield from (f"  {sanitize(line)}" for line in lines[:-1])
        yield f"  {lines[-1]}{comma}"


def _example(each: Mapping[str, Any]) -> str:
    args = each["example"]["args"]
    shown = ", ".join(f"{name}={value}" for name, value in args.items())
    return f"{each['tool']}({shorten_middle(shown, 50)})"
