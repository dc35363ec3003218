"""What `--record-approvals` asks at the end: whether to keep what a person has allowed in the project's lock."""

from __future__ import annotations

import asyncio
import datetime
import getpass
import json
from typing import Any

from llm_do.cli.actions.lock.lock_action import add_approvals
from llm_do.cli.actions.session import Session
from llm_do.cli.process.streams import warn
from llm_do.formats.lock import FILE
from llm_do.text.sanitizer import sanitize

__all__ = ["record_approvals"]


def record_approvals(session: Session) -> None:
    """Show what was allowed, and add it to the lock if whoever started the run says so."""
    entries = session.runtime.approver.granted
    if not entries:
        warn("you have allowed nothing that could be kept")
        return
    for entry in entries:
        warn(sanitize(f"  {_shown(entry)}"))
    which = "this approval" if len(entries) == 1 else f"these {len(entries)} approvals"
    if asyncio.run(session.ask(f"Keep {which} in {FILE}? [y/n] ")).lower() not in ("y", "yes"):
        warn("nothing was kept")
        return
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    said = {"by": _user(), "on": today, "why": asyncio.run(session.ask("Why (Enter for no reason): "))}
    kept = {name: text for name, text in said.items() if text}
    add_approvals(session.runtime.project.root, [{**entry, **kept} for entry in entries])
    warn(f"wrote {FILE}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""  # in a container, a user may have no name


def _shown(entry: dict[str, Any]) -> str:
    agent = f"{entry['agent']}: " if "agent" in entry else ""
    if "rule" in entry:
        return f"{agent}{entry['rule']}"
    return f"{agent}{entry['tool']} with exactly {json.dumps(entry['args'], ensure_ascii=False)}"
