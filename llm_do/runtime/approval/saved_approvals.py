"""Saved approvals: what a person has allowed permanently in a project, in a file of their state folder.

They are the person's and not the project's: a file that comes with a folder answers nothing (`found_approvals`). An
entry is a rule, or a single call that is bound to a digest of its arguments. Saved approvals answer questions; they
change nothing that a rule denies, and don't answer a question that only a person may answer.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from llm_do._home_folder import home_folder
from llm_do._machine_limits import hint_for
from llm_do._startup.frozen import frozen
from llm_do.errors import StoreError
from llm_do.files.state_folder import StateFile, state_folder
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.policy.digest import written_call, written_digest
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.rules import Rule
from llm_do.policy.values import ToolCallInfo

__all__ = [
    "SavedApproval",
    "SavedApprovalFault",
    "SavedApprovals",
    "add_call",
    "add_rule",
    "answers_file",
    "clear",
    "load_saved_approvals",
    "parse_approvals",
    "revoke",
    "shown",
    "start",
]


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
        file: The file, as it is shown.
        message: What is wrong with it.
        line: The line; None for the file as a whole.

    Example:
        >>> print(SavedApprovalFault("answers/desk.json", "an entry is a rule or an object", 3))
        answers/desk.json:3: an entry is a rule or an object
    """

    file: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.message}" if self.line is None else f"{self.file}:{self.line}: {self.message}"


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


def answers_file(root: Path) -> StateFile:
    """Return the file with a person's answers for one project; it needn't exist.

    Raises:
        OSError: There is no home folder.
    """
    real = os.path.realpath(root)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(real)).strip(".-")[:40] or "project"  # noqa: PTH119
    key = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return StateFile(state_folder() / "answers" / f"{name}-{key}.json")


def shown(path: Path) -> str:
    """Return a path as a person writes it.

    Example:
        >>> shown(Path.home() / "a.json")
        '~/a.json'
    """
    with contextlib.suppress(ValueError, RuntimeError):
        return f"~/{path.relative_to(home_folder()).as_posix()}"
    return str(path)


def load_saved_approvals(root: Path) -> SavedApprovals:
    """Read a person's answers for a project. What can't be read allows nothing."""
    try:
        file = answers_file(root)
    except OSError:
        return SavedApprovals()
    text, fault = _read(file)
    if fault is not None:
        return SavedApprovals(faults=(SavedApprovalFault(shown(file.path), fault),))
    return parse_approvals(text, shown(file.path), root) if text is not None else SavedApprovals()


def _read(file: StateFile) -> tuple[str | None, str | None]:
    """The file's text, or why it can't be read."""
    try:
        return file.read(), None
    except OSError as error:
        return None, error.strerror or str(error)
    except UnicodeDecodeError:
        return None, "it is not text in UTF-8"


def parse_approvals(text: str, file: str, root: Path | None = None) -> SavedApprovals:
    """Read the entries of a file, which is named in their places; with a root, it must be that project's."""
    result = parse_json(text, file)
    if result.node is None or result.diagnostics:
        return SavedApprovals(
            faults=tuple(SavedApprovalFault(file, item.message, item.line) for item in result.diagnostics)
        )
    data: object = result.node.data()
    if not isinstance(data, dict) or data.get("version") != 1 or not isinstance(data.get("allow"), list):
        return SavedApprovals(faults=(SavedApprovalFault(file, 'it is not {"version": 1, "allow": [...]}', 1),))
    if root is not None and data.get("project") != _project(root):
        return SavedApprovals(faults=(SavedApprovalFault(file, "it belongs to another project", 1),))
    stored: list[SavedApproval] = []
    faults: list[SavedApprovalFault] = []
    for index, entry in enumerate(cast("list[object]", data["allow"])):
        line = result.node.place_of(("allow", index)).line
        try:
            stored.append(_parse_entry(entry, f"{file}:{line}"))
        except ValueError as error:
            faults.append(SavedApprovalFault(file, str(error), line))
    return SavedApprovals(tuple(stored), tuple(faults))


def _project(root: Path) -> str:
    """The project as the file names it."""
    return os.fsencode(os.path.realpath(root)).decode(errors="backslashreplace")


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
        if written_digest(shown) != data["digest"]:
            raise ValueError("the call was edited and isn't the one that was allowed; write a rule instead")
        return SavedApproval(place, added, digest=data["digest"], call=shown, entry=data)
    raise ValueError("an entry has a `rule`, or a `call` and its `digest`")


def add_rule(root: Path, text: str) -> None:
    """Save a rule."""
    parse_pattern(text)
    _add(root, {"rule": text, "added": _today()})


def add_call(root: Path, call: ToolCallInfo) -> None:
    """Save a single call."""
    try:
        written = written_call(call)
    except ValueError as error:
        raise StoreError(f"the call of {call.tool_name} can't be saved: {error}", hint="Allow it by a rule.") from error
    _add(root, {"call": written, "digest": written_digest(written), "added": _today()})


def revoke(root: Path, stored: Sequence[SavedApproval]) -> None:
    """Revoke saved approvals."""
    revoked = [saved.entry for saved in stored]
    with _edit(root) as entries:
        entries[:] = [
            entry for entry in entries if (entry if isinstance(entry, dict) else {"rule": entry}) not in revoked
        ]


def clear(root: Path) -> None:
    """Revoke every saved approval, even where the file can't be read."""
    with _locked(root) as file:
        _write(file, root, [])


def start(root: Path, entries: Sequence[Any] = ()) -> bool:
    """Write a project's first file; returns False if there is one already."""
    with _locked(root) as file:
        if os.path.lexists(file.path):
            return False
        _write(file, root, entries)
        return True


def _add(root: Path, entry: dict[str, Any]) -> None:
    same = {key: value for key, value in entry.items() if key != "added"}
    with _edit(root) as entries:
        if not any(isinstance(item, dict) and same.items() <= item.items() for item in entries):
            entries.append(entry)


@contextlib.contextmanager
def _edit(root: Path) -> Generator[list[Any]]:
    """The file's entries, written back at the end; one process at a time."""
    with _locked(root) as file:
        text, fault = _read(file)
        if text is not None:
            result = parse_json(text, file.path.name)
            data: object = result.node.data() if result.node is not None and not result.diagnostics else None
            if isinstance(data, dict) and isinstance(data.get("allow"), list) and data.get("project") == _project(root):
                entries = cast("list[Any]", data["allow"])
                before = json.dumps(entries)
                yield entries
                if json.dumps(entries) != before:
                    _write(file, root, entries)
                return
            fault = "it can't be read"
        if fault is not None:
            where = shown(file.path)
            raise StoreError(f"{where}: {fault}", hint=f"Correct {where}, or delete it.")
        new: list[Any] = []
        yield new
        _write(file, root, new)


@contextlib.contextmanager
def _locked(root: Path) -> Generator[StateFile]:
    """The file, which no other process changes meanwhile."""
    with contextlib.ExitStack() as stack:
        try:
            file = answers_file(root)
            stack.enter_context(file.locked())
        except OSError as error:
            raise _unwritable(error) from error
        yield file


def _write(file: StateFile, root: Path, entries: Sequence[Any]) -> None:
    lines = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in entries)
    inner = f"\n{lines}\n  " if entries else ""
    project = json.dumps(_project(root), ensure_ascii=False)
    try:
        file.write(f'{{\n  "version": 1,\n  "project": {project},\n  "allow": [{inner}]\n}}\n')
    except (OSError, UnicodeEncodeError) as error:
        raise _unwritable(error) from error


def _unwritable(error: Exception) -> StoreError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    hint = "See that you may write to $XDG_STATE_HOME/llm-do, or answer for the session, which needs no file."
    return StoreError(f"the approval can't be saved: {reason}", hint=hint_for(error, hint))


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
