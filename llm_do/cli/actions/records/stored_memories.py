"""What `llm-do memory` does with what agents remember in a project's store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from llm_do.cli.actions.project_store import align_columns, local_time, print_from_store
from llm_do.cli.process.streams import warn
from llm_do.errors import UsageError
from llm_do.runtime.record.store.memories import Memory, MemoryFilter
from llm_do.text.generated_ids import short_run_id
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import truncate_end
from llm_do.threads.sql.sql_store import SqlStore

__all__ = ["forget", "list_memories", "print_from_store", "show_memories"]

_LINE = 100
"""Characters of a text in a list."""

_INDENT = "    "
"""Before each line of a text, since a model wrote it: none can pass for a line of ours."""

_SEE = "See `llm-do memory list`, with --scope, --user and --thread."


async def list_memories(store: SqlStore, chosen: MemoryFilter, *, limit: int, as_json: bool) -> Sequence[str]:
    """Memories, the latest first, or those first that fit a search best."""
    found = await store.memories.find(chosen, limit)
    if found.left_off:
        warn(f"{found.left_off:,} more are not shown; --limit shows more")
    if as_json:
        return _as_json(found.memories)
    return _lines(found.memories) or ["nothing is remembered"]


async def show_memories(store: SqlStore, chosen: MemoryFilter, *, as_json: bool) -> Sequence[str]:
    """A memory in full; the same text may be kept for several threads or users."""
    found = (await store.memories.find(chosen)).memories
    if not found:
        raise _unknown(chosen)
    if as_json:
        return _as_json(found)
    lines: list[str] = []
    for each in found:
        writer = f", by {each.agent} in run {short_run_id(each.run_id)}" if each.run_id else ""
        lines += [*([""] if lines else []), f"memory {each.id} of {_whose(each)}"]
        lines.append(f"remembered {local_time(each.updated)}{writer}")
        if each.created != each.updated:
            lines.append(f"first remembered {local_time(each.created)}")
        lines += [f"{_INDENT}{line}" for line in each.text.splitlines()]
    return [sanitize(line) for line in lines]


async def forget(
    store: SqlStore, chosen: MemoryFilter, ids: Sequence[str], *, every: bool, as_json: bool
) -> Sequence[str]:
    """Delete memories, and show what they said."""
    if every == bool(ids):
        raise UsageError(
            "--all and ids exclude each other" if ids else "no memory is named",
            hint="Name ids, or select memories by --scope, --user and --thread, and add --all.",
        )
    memories = (await store.memories.find(chosen)).memories if every else await _named(store, chosen, ids)
    await store.memories.delete(memories)
    if as_json:
        return _as_json(memories)
    return _lines(memories) or ["nothing is remembered"]


async def _named(store: SqlStore, chosen: MemoryFilter, ids: Sequence[str]) -> tuple[Memory, ...]:
    """The memory of each id, before any is deleted."""
    named: dict[tuple[tuple[str, ...], str], Memory] = {}
    for id in ids:
        one = replace(chosen, id=id)
        found = (await store.memories.find(one)).memories
        match found:
            case ():
                raise _unknown(one)
            case (memory,):
                named[memory.owner.key, memory.id] = memory
            case _:
                owners = ", ".join(sanitize(_whose(each)) for each in found[:5])
                raise UsageError(
                    f"{id!r} stands for {len(found)} memories: {owners}",
                    hint="Write more of it, or say which one with --scope, --user or --thread; `show` shows them all.",
                )
    return tuple(named.values())


def _unknown(chosen: MemoryFilter) -> UsageError:
    narrow = any(each is not None for each in (chosen.scope, chosen.user_id, chosen.thread_id))
    return UsageError(f"there is no memory {chosen.id}{' that these options select' if narrow else ''}", hint=_SEE)


def _lines(memories: Sequence[Memory]) -> list[str]:
    return align_columns(
        [
            [each.id, _whose(each), local_time(each.updated), truncate_end(" ".join(each.text.split()), _LINE, end="…")]
            for each in memories
        ]
    )


def _whose(memory: Memory) -> str:
    owner = memory.owner
    match owner.scope:
        case "project":
            return f"project {owner.project}".rstrip()
        case "user":
            return f"user {owner.user}"
        case "thread":
            return f"thread {owner.thread}" + (f" of {owner.user}" if owner.user else "")


def _as_json(memories: Sequence[Memory]) -> list[str]:
    return [json.dumps([each.to_dict() for each in memories], ensure_ascii=False)]
