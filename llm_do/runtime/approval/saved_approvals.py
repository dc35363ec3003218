"""Saved approvals: what a person has allowed permanently, in `.llm-do/approvals.json` of the project.

An entry is a rule, or a single call that is bound to a digest of its arguments. Saved approvals answer questions; they
change nothing that a rule denies, and don't answer a question that only a person may answer.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from llm_do._startup.frozen import frozen
from llm_do.errors import StoreError
from llm_do.files.local_folder import FOLDER, NOT_LINKED, is_linked, make_folder
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.rules import Rule
from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import digest

__all__ = [
    "FILE",
    "SavedApproval",
    "SavedApprovalFault",
    "SavedApprovals",
    "add_call",
    "add_rule",
    "clear",
    "load_saved_approvals",
    "revoke",
]

FILE = f"{FOLDER}/approvals.json"
"""The file, below the project's root."""

LIMIT = 4 * 1024 * 1024
"""The largest size that is read, in bytes."""


@frozen
class SavedApproval:
    """One saved approval.

    Args:
        place: `file:line` where it stands.
        added: The day, as ISO text; empty where it isn't known.
        rule: The rule; None for a single call.
        digest: The digest that a single call is bound to.
        call: That call, for display: `agent`, `tool`, `toolset`, `args`, `resolved`.
        entry: The entry as it is in the file.
    """

    place: str
    added: str = ""
    rule: Rule | None = None
    digest: str | None = None
    call: Mapping[str, Any] = field(default_factory=dict[str, Any])
    entry: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def text(self) -> str:
        """What it allows, in one line."""
        if self.rule is not None:
            return self.rule.text
        args = json.dumps(self.call.get("args", {}), ensure_ascii=False)
        return f"{self.call.get('agent')}: {self.call.get('tool')} with exactly {args}"


@frozen
class SavedApprovalFault:
    """Something in the file that can't be read, and allows nothing.

    Args:
        message: What is wrong with it.
        line: The line; None for the file as a whole.

    Example:
        >>> print(SavedApprovalFault("an entry is a rule or an object", 3))
        .llm-do/approvals.json:3: an entry is a rule or an object
    """

    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{FILE}: {self.message}" if self.line is None else f"{FILE}:{self.line}: {self.message}"


@frozen
class SavedApprovals:
    """Everything in the file.

    Args:
        stored: The approvals, in the file's order.
        faults: What is wrong with the entries that can't be read.
    """

    stored: tuple[SavedApproval, ...] = ()
    faults: tuple[SavedApprovalFault, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules."""
        return tuple(saved.rule for saved in self.stored if saved.rule is not None)

    @property
    def digests(self) -> dict[str, str]:
        """The digests of single calls, each with its place."""
        return {saved.digest: saved.place for saved in self.stored if saved.digest is not None}


def load_saved_approvals(root: Path) -> SavedApprovals:
    """Read a project's saved approvals. What can't be read allows nothing."""
    text, fault = _read(root)
    if fault is not None:
        return SavedApprovals(faults=(SavedApprovalFault(fault),))
    return _parse(text) if text is not None else SavedApprovals()


def _read(root: Path) -> tuple[str | None, str | None]:
    if not os.path.lexists(root / FILE):
        return None, None
    try:
        data = Root(root).read(FILE, limit=LIMIT + 1)
        if len(data) > LIMIT:
            return None, f"it is larger than {LIMIT} bytes"
        return data.decode("utf-8-sig"), None
    except FileRefusedError as error:
        return None, error.why
    except (UnicodeDecodeError, OSError) as error:
        return None, str(error)


def _parse(text: str) -> SavedApprovals:
    result = parse_json(text, FILE)
    if result.node is None or result.diagnostics:
        return SavedApprovals(faults=tuple(SavedApprovalFault(item.message, item.line) for item in result.diagnostics))
    data: object = result.node.data()
    if not isinstance(data, dict) or data.get("version") != 1 or not isinstance(data.get("allow"), list):
        return SavedApprovals(faults=(SavedApprovalFault('it is not {"version": 1, "allow": [...]}', 1),))
    stored: list[SavedApproval] = []
    faults: list[SavedApprovalFault] = []
    for index, entry in enumerate(cast("list[object]", data["allow"])):
        line = result.node.place_of(("allow", index)).line
        try:
            stored.append(_parse_entry(entry, f"{FILE}:{line}"))
        except ValueError as error:
            faults.append(SavedApprovalFault(str(error), line))
    return SavedApprovals(tuple(stored), tuple(faults))


def _parse_entry(entry: object, place: str) -> SavedApproval:
    """One entry of the file."""
    if isinstance(entry, str):
        entry = {"rule": entry}
    if not isinstance(entry, dict):
        raise ValueError("an entry is a rule or an object")
    data = cast("dict[str, Any]", entry)
    unknown = sorted(set(data) - {"rule", "call", "digest", "added"})
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}")
    added = str(data.get("added") or "")
    rule, call = data.get("rule"), data.get("call")
    if isinstance(rule, str) and call is None:
        try:
            pattern = parse_pattern(rule)
        except PatternError as error:
            raise ValueError(f"the rule {rule} can't be read: {error.message}") from error
        return SavedApproval(place, added, Rule("allow", pattern, rule, place=place), entry=data)
    if isinstance(call, dict) and isinstance(data.get("digest"), str):
        shown = cast("dict[str, Any]", call)
        if _digest_of(shown) != data["digest"]:
            raise ValueError("the call was edited and isn't the one that was allowed; write a rule instead")
        return SavedApproval(place, added, digest=data["digest"], call=shown, entry=data)
    raise ValueError("an entry has a `rule`, or a `call` and its `digest`")


def _digest_of(call: Mapping[str, Any]) -> str:
    return digest([call.get("agent"), call.get("toolset"), call.get("tool"), call.get("args"), call.get("resolved")])


def add_rule(root: Path, text: str) -> None:
    """Save a rule."""
    parse_pattern(text)
    _add(root, {"rule": text, "added": _today()})


def add_call(root: Path, call: ToolCallInfo) -> None:
    """Save a single call."""
    shown = {
        "agent": call.path,
        "toolset": call.toolset,
        "tool": call.tool_name,
        "args": dict(call.args),
        "resolved": dict(call.resolved),
    }
    try:
        text = json.dumps(shown, allow_nan=False)
        again = _digest_of(json.loads(text))
        if again != _digest_of(shown):
            raise ValueError("it wouldn't be read back as the same call")
    except (TypeError, ValueError) as error:
        raise StoreError(f"the call of {call.tool_name} can't be saved: {error}", hint="Allow it by a rule.") from error
    _add(root, {"call": json.loads(text), "digest": again, "added": _today()})


def revoke(root: Path, stored: Sequence[SavedApproval]) -> None:
    """Revoke saved approvals."""
    revoked = [saved.entry for saved in stored]
    with _edit(root) as entries:
        entries[:] = [
            entry for entry in entries if (entry if isinstance(entry, dict) else {"rule": entry}) not in revoked
        ]


def clear(root: Path) -> None:
    """Revoke every saved approval, even where the file can't be read."""
    with _lock(root):
        _write(root, [])


def _add(root: Path, entry: dict[str, Any]) -> None:
    same = {key: value for key, value in entry.items() if key != "added"}
    with _edit(root) as entries:
        if not any(isinstance(item, dict) and same.items() <= item.items() for item in entries):
            entries.append(entry)


@contextlib.contextmanager
def _edit(root: Path) -> Generator[list[Any]]:
    """The file's entries, written back at the end; one process at a time."""
    with _lock(root):
        text, fault = _read(root)
        if text is not None and fault is None:
            result = parse_json(text, FILE)
            data: object = result.node.data() if result.node is not None and not result.diagnostics else None
            if isinstance(data, dict) and isinstance(data.get("allow"), list):
                entries = cast("list[Any]", data["allow"])
                before = json.dumps(entries)
                yield entries
                if json.dumps(entries) != before:
                    _write(root, entries)
                return
            fault = "it can't be read"
        if fault is not None:
            raise StoreError(f"{FILE}: {fault}", hint=f"Correct {FILE}, or delete it.")
        new: list[Any] = []
        yield new
        _write(root, new)


@contextlib.contextmanager
def _lock(root: Path) -> Generator[None]:
    folder = root / FOLDER
    try:
        make_folder(root)
        lock = os.open(folder / "approvals.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        hint = NOT_LINKED if is_linked(root) else None
        raise StoreError(f"the approval can't be saved in {folder}: {error.strerror or error}", hint=hint) from error
    try:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(root: Path, entries: Sequence[Any]) -> None:
    lines = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
    inner = f"\n{lines}\n  " if entries else ""
    text = f'{{\n  "version": 1,\n  "allow": [{inner}]\n}}\n'
    try:
        Root(root).write(FILE, text.encode())
    except (FileRefusedError, OSError) as error:
        raise StoreError(
            f"the approval can't be saved in {root / FILE}: {error}",
            hint="see that `.llm-do` is a folder that you may write to; a `session` answer needs no file",
        ) from error


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
