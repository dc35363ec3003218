"""What `llm-do check --bounds` prints: the worst case of a run, and what would lower it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llm_do.linker.proofs.bounds import WORDS, number_text
from llm_do.text.sanitizer import sanitize
from llm_do.ui.terminal.screen import paint

__all__ = ["bounds_lines"]


def bounds_lines(data: Mapping[str, Any], *, color: bool = False) -> Iterator[str]:
    """The worst case as text: a line for each quantity, then the limits that lower it most."""
    yield f"the worst case of a run of {paint(sanitize(data['entry']), 'name', color=color)}"
    for name, title in WORDS.items():
        found, limit = data["worst_case"][name], data["maximum"][name]
        most = found["most"]
        text = number_text(most, name) if most is not None else "unbounded"
        over = limit is not None and (most is None or most > limit)
        style = "bad" if over else "good" if limit is not None else "warn" if most is None else ""
        shown = paint(f"{text:>12}", style, color=color) if style else f"{text:>12}"
        notes: list[str] = []
        if limit is not None:
            notes.append(f"{'over' if over else 'within'} the maximum of {number_text(limit, name)}")
        if found["reason"] is not None:
            place = f" ({found['place']})" if found["place"] else ""
            notes.append(f"{found['reason']}{place}")
        note = paint(f"  {sanitize('; '.join(notes))}", "quiet", color=color) if notes else ""
        yield f"  {title:<14}  {shown}{note}"
    remedies = dict.fromkeys(found["remedy"] for found in data["worst_case"].values() if found["remedy"])
    for remedy in remedies:
        yield f"to bound it, {sanitize(remedy)}"
    for number, each in enumerate(data["tighten"]):
        after = each["worst_case"]["requests"]["most"]
        what = "requests"
        if after is None or after == data["worst_case"]["requests"]["most"]:
            after, what = each["worst_case"]["tool_calls"]["most"], "tool_calls"
        begins = "it is lowered most by" if number == 0 else "then by"
        to = f"{number_text(after, what)} {WORDS[what]}" if after is not None else "less"
        yield f"{begins} {sanitize(each['limit'])}, now {each['now']}: {each['try']} makes it {to}"
