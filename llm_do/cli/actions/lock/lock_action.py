"""What `llm-do lock` does: asks servers for their tools, shows what has changed, and writes `llm-do.lock`."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_do._startup.process import hasten_reading
from llm_do.cli.actions.admission import admit
from llm_do.cli.actions.link_report import show
from llm_do.cli.process.streams import claim_stdout, warn
from llm_do.errors import StoreError
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.formats.lock import FILE, Lock, LockedServer
from llm_do.formats.lock_file import approval_entries, parse_lock, read_servers, server_entries, write_lock
from llm_do.formats.server_changes import change_lines, server_changes, tool_changes
from llm_do.formats.server_listings import ListedTool
from llm_do.formats.syntax.source import Node, read_text
from llm_do.linker.subprocess_check import check_in_subprocess
from llm_do.text.sanitizer import sanitize
from llm_do.ui.reports.server_listing import forget_seen

__all__ = ["add_approvals", "carry_out"]


def carry_out(path: Path, *, check: bool, trust: bool, seconds: float, env_file: str | None, no_color: bool) -> int:
    """Write or compare the lock of a project; returns the exit code."""
    results = claim_stdout()
    hasten_reading()
    admission = admit(path, trust=trust, connects=True, env_file=env_file, no_color=no_color)
    if not admission.open:
        admission.say(check_in_subprocess(path, seconds=seconds, env_file=env_file).left_out)
        warn(
            f"error: {FILE} can't be written or compared without starting the project's servers and importing its code "
            "and packages, and the project isn't trusted. --trust allows that once, `llm-do trust` always."
        )
        return 3
    task = "llm_do.ui.reports.server_listing:lock_contents"
    asked = check_in_subprocess(path, task, seconds=seconds, env_file=env_file)
    ours = [item for item in asked.diagnostics if item.file == FILE]
    if asked.data is None or (check and ours):
        show(asked, no_color=no_color)
    if asked.data is None:
        return 3
    root = asked.root
    before, node = _read(root)
    known: Mapping[str, LockedServer] = before.servers if before is not None else {}
    answers: Mapping[str, Mapping[str, Any]] = asked.data["servers"]
    packages: Mapping[str, str] = asked.data["packages"]
    faults = {name: str(answer["fault"]) for name, answer in answers.items() if "fault" in answer}
    after = read_servers({name: answer["entry"] for name, answer in answers.items() if "entry" in answer})
    after |= {name: known[name] for name in faults if name in known}
    for name, fault in faults.items():
        warn(sanitize(f"error: {name}: {' '.join(fault.split())}"))
    lines = [*_difference(known, after), *(before or Lock()).package_changes(packages)]
    results.write_lines(map(sanitize, lines))
    if check:
        if before is None:
            warn(f"there is no {FILE}; `llm-do lock` writes it")
        return 3 if lines or ours or before is None else 1 if faults else 0
    entries = {name: answer["entry"] for name, answer in answers.items() if "entry" in answer}
    entries |= {name: entry for name, entry in server_entries(node).items() if name in faults}
    _write(root, write_lock(entries, approval_entries(node), packages))
    forget_seen(root, [name for name in after if name not in faults])
    warn(f"{FILE} is up to date" if before is not None and not lines else f"wrote {FILE}")
    return 1 if faults else 0


def add_approvals(root: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Add approvals to a project's lock.

    Raises:
        StoreError: The lock can't be read or written.
    """
    lock, node = _read(root)
    packages = (lock or Lock()).packages
    _write(root, write_lock(server_entries(node), [*approval_entries(node), *entries], packages))


def _read(root: Path) -> tuple[Lock | None, Node | None]:
    """A project's lock and its nodes, which linking has checked; None if there is none."""
    if not (root / FILE).exists():
        return None, None
    read = read_text(root / FILE, FILE)
    parsed = parse_lock(read.text or "", datetime.datetime.now(tz=datetime.UTC).date())
    if parsed.value is None:
        first = (*read.diagnostics, *parsed.diagnostics)[0]
        raise StoreError(f"{first.place}: {first.message}", hint=first.hint)
    return parsed.value, parsed.node


def _write(root: Path, text: str) -> None:
    try:
        Root(root).write(FILE, text.encode())
    except (FileRefusedError, OSError) as error:
        raise StoreError(f"{FILE} can't be written: {error}", hint="See that you may write to the folder.") from error


def _difference(before: Mapping[str, LockedServer], after: Mapping[str, LockedServer]) -> Iterator[str]:
    """What has changed, server by server and field by field."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"{name}: is no longer in the manifest"
            continue
        known: Mapping[str, ListedTool] = old.tools if old is not None else {}
        if old is None:
            yield f"{name}: new server"
        elif old.address != new.address:
            yield f"{name}: another command or URL"
            yield from (f"  {mark}  {value}" for mark, value in (("-", _said(old)), ("+", _said(new))))
        yield from _tools(name, known, new.tools, old.edited if old is not None else frozenset())


def _tools(
    server: str, before: Mapping[str, ListedTool], after: Mapping[str, ListedTool], edited: frozenset[str]
) -> Iterator[str]:
    changes = server_changes(before, after)
    for name in changes.new:
        yield f"{server}: {name} is new"
        yield from _indented(change_lines(tool_changes(ListedTool(name, None, {}), after[name])))
    yield from (f"{server}: {name} is gone" for name in changes.gone)
    yield from (f"{server}: {old} is now called {name}" for name, old in changes.renamed.items())
    for name, fields in changes.changed.items():
        yield f"{server}: {name} has changed"
        yield from _indented(change_lines(fields))
    for name in sorted(edited & after.keys() - changes.changed.keys()):
        yield f"{server}: the digest of {name} has been edited"


def _said(server: LockedServer) -> str:
    address = server.address
    return " ".join(address["command"]) if "command" in address else str(address.get("url", ""))


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
