"""The diff of a file that a person sees."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence

from llm_do.files.paths import display_path

__all__ = ["is_complete", "unified_diff"]

_CONTEXT = 3
_MAX_LINES = 3000
_MAX_PAIRS = 20_000
_MAX_SHOWN = 2000

Opcode = tuple[str, int, int, int, int]


def unified_diff(before: str, after: str, path: str) -> str:
    """Return a unified diff of one file, empty if nothing changes.

    Texts that would take too long to compare are shown as one replaced block. A diff that is too long to read ends with
    a line that says how much is omitted.

    Example:
        >>> print(unified_diff("a\\nb\\n", "a\\nc\\n", "x"), end="")
        --- x
        +++ x
        @@ -1,2 +1,2 @@
         a
        -b
        +c
    """
    old, new = _lines(before), _lines(after)
    if old == new:
        return ""
    lines = [f"--- {display_path(path)}\n", f"+++ {display_path(path)}\n"]
    for group in _groups(old, new):
        lines += _hunk(group, old, new)
    if len(lines) > _MAX_SHOWN:
        lines[_MAX_SHOWN:] = [f"[{len(lines) - _MAX_SHOWN:,} more lines of this diff are not shown]\n"]
    return "".join(lines)


def is_complete(diff: str) -> bool:
    """Whether no part of a diff is omitted."""
    return not diff.removesuffix("\n").rpartition("\n")[2].startswith("[")


def _groups(old: Sequence[str], new: Sequence[str]) -> Iterator[list[Opcode]]:
    """Return the changes with the lines around them, comparing only the text between the first and the last change."""
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    tail = next((n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head)
    start, old_end, new_end = max(head - _CONTEXT, 0), len(old) - tail, len(new) - tail
    after = min(tail, _CONTEXT)
    middle_old, middle_new = old[head:old_end], new[head:new_end]
    if _quick(middle_old, middle_new):
        matcher = difflib.SequenceMatcher(
            None, old[start : old_end + after], new[start : new_end + after], autojunk=False
        )
        for group in matcher.get_grouped_opcodes(_CONTEXT):
            yield [(tag, a + start, b + start, c + start, d + start) for tag, a, b, c, d in group]
        return
    yield [
        ("equal", start, head, start, head),
        ("replace", head, old_end, head, new_end),
        ("equal", old_end, old_end + after, new_end, new_end + after),
    ]


def _quick(old: Sequence[str], new: Sequence[str]) -> bool:
    if max(len(old), len(new)) > _MAX_LINES:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= _MAX_PAIRS


def _hunk(group: Sequence[Opcode], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            yield from (_line(" ", line) for line in old[old_from:old_to])
            continue
        yield from (_line("-", line) for line in old[old_from:old_to])
        yield from (_line("+", line) for line in new[new_from:new_to])


def _range(start: int, end: int) -> str:
    length = end - start
    return str(start + 1) if length == 1 else f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Split a text into lines as `diff` does: only a line feed ends a line."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
