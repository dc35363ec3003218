"""Answers that last: what a person has allowed for good, in `.llm-do/approvals.json` of the project.

An entry is a rule, or one very call, bound to a digest of its arguments. They answer questions; they don't take
anything away from what rules deny, and no answer stands for a person where only a person may answer.
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

from llm_do._frozen import frozen
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
"""Where they are kept, below the project's root."""

LIMIT = 4 * 1024 * 1024
"""Bytes of that file that are read."""


@frozen
class SavedApproval:
    """One thing that a person has allowed for good.

    Args:
        place: `file:line` where it stands.
        added: The day, as ISO text; empty where it isn't known.
        rule: The rule; None for one very call.
        digest: What the answer to one very call is bound to.
        call: That call, for people: `agent`, `tool`, `toolset`, `args`, `resolved`.
        entry: The entry as it stands in the file.
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
    """Something in the file that allows nothing.

    Args:
        message: What is wrong with it.
        line: Where it stands; None for the whole file.

    Example:
        >>> print(SavedApprovalFault("an answer is a rule or an object", 3))
        .llm-do/approvals.json:3: an answer is a rule or an object
    """

    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{FILE}: {self.message}" if self.line is None else f"{FILE}:{self.line}: {self.message}"


@frozen
class SavedApprovals:
    """All that stands in the file.

    Args:
        stored: The answers, in the file's order.
        faults: What is wrong with the others; they allow nothing.
    """

    stored: tuple[SavedApproval, ...] = ()
    faults: tuple[SavedApprovalFault, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules."""
        return tuple(answer.rule for answer in self.stored if answer.rule is not None)

    @property
    def digests(self) -> dict[str, str]:
        """The single calls' digests, each with the place where it stands."""
        return {answer.digest: answer.place for answer in self.stored if answer.digest is not None}


def load_saved_approvals(root: Path) -> SavedApprovals:
    """Read a project's answers. What can't be read allows nothing."""
    text, fault = _read(root)
    if fault is not None:
        return SavedApprovals(faults=(SavedApprovalFault(fault),))
    return _parsed(text) if text is not None else SavedApprovals()


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


def _parsed(text: str) -> SavedApprovals:
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
            stored.append(_answer(entry, f"{FILE}:{line}"))
        except ValueError as error:
            faults.append(SavedApprovalFault(str(error), line))
    return SavedApprovals(tuple(stored), tuple(faults))


def _answer(entry: object, place: str) -> SavedApproval:
    """One entry of the file."""
    if isinstance(entry, str):
        entry = {"rule": entry}
    if not isinstance(entry, dict):
        raise ValueError("an answer is a rule or an object")
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
            raise ValueError("the call was changed and isn't the one that was allowed; write a rule instead")
        return SavedApproval(place, added, digest=data["digest"], call=shown, entry=data)
    raise ValueError("an answer has a `rule`, or a `call` and its `digest`")


def _digest_of(call: Mapping[str, Any]) -> str:
    return digest([call.get("agent"), call.get("toolset"), call.get("tool"), call.get("args"), call.get("resolved")])


def add_rule(root: Path, text: str) -> None:
    """Allow for good what a rule matches."""
    parse_pattern(text)
    _add(root, {"rule": text, "added": _today()})


def add_call(root: Path, call: ToolCallInfo) -> None:
    """Allow one very call for good."""
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
            raise ValueError("it would read as another call")
    except (TypeError, ValueError) as error:
        raise StoreError(f"the call of {call.tool_name} can't be kept: {error}", hint="Allow it by a rule.") from error
    _add(root, {"call": json.loads(text), "digest": again, "added": _today()})


def revoke(root: Path, stored: Sequence[SavedApproval]) -> None:
    """Take answers back."""
    gone = [answer.entry for answer in stored]
    with _changing(root) as entries:
        entries[:] = [entry for entry in entries if (entry if isinstance(entry, dict) else {"rule": entry}) not in gone]


def clear(root: Path) -> None:
    """Take all answers back, also where the file can't be read."""
    with _locked(root):
        _write(root, [])


def _add(root: Path, entry: dict[str, Any]) -> None:
    same = {key: value for key, value in entry.items() if key != "added"}
    with _changing(root) as entries:
        if not any(isinstance(item, dict) and same.items() <= item.items() for item in entries):
            entries.append(entry)


@contextlib.contextmanager
def _changing(root: Path) -> Generator[list[Any]]:
    """The file's entries, written back at the end; one process at a time."""
    with _locked(root):
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
        made: list[Any] = []
        yield made
        _write(root, made)


@contextlib.contextmanager
def _locked(root: Path) -> Generator[None]:
    folder = root / FOLDER
    try:
        make_folder(root)
        lock = os.open(folder / "approvals.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        hint = NOT_LINKED if is_linked(root) else None
        raise StoreError(f"the answer can't be kept in {folder}: {error.strerror or error}", hint=hint) from error
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
        raise StoreError(f"the answer can't be kept in {root / FILE}: {error}") from error


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
