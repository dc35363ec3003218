"""Approvals found in a project's folder, in `.llm-do/approvals.json`: shown, but obeyed only by whoever moves them.

That file used to be where answers were kept. Anyone who shares a folder can write it, so the first run in a folder that
is trusted moves it to the person's own answers, once; one that appears later stays where it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from llm_do.files.local_folder import FOLDER
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.runtime.approval.saved_approvals import (
    SavedApprovalFault,
    SavedApprovals,
    answers_file,
    parse_approvals,
    start,
)

__all__ = ["FILE", "load_found_approvals", "move_found_approvals"]

FILE = f"{FOLDER}/approvals.json"
"""The file, below the project's root."""

_LIMIT = 4 * 1024 * 1024


def load_found_approvals(root: Path) -> SavedApprovals:
    """Read the approvals in a project's folder, which allow nothing."""
    if not os.path.lexists(root / FILE):
        return SavedApprovals()
    try:
        data = Root(root).read(FILE, limit=_LIMIT + 1)
        if len(data) > _LIMIT:
            return _unreadable(f"it is larger than {_LIMIT} bytes")
        return parse_approvals(data.decode("utf-8-sig"), FILE)
    except FileRefusedError as error:
        return _unreadable(error.why)
    except UnicodeDecodeError:
        return _unreadable("it is not text in UTF-8")
    except OSError as error:
        return _unreadable(error.strerror or str(error))


def _unreadable(reason: str) -> SavedApprovals:
    return SavedApprovals(faults=(SavedApprovalFault(FILE, reason),))


def move_found_approvals(root: Path) -> int:
    """Move the approvals in a trusted project's folder to the person's own, unless they have some already.

    Returns:
        How many there were.

    Raises:
        StoreError: The person's answers can't be written.
    """
    if _has_answers(root):
        return 0
    found = load_found_approvals(root)
    if not start(root, [dict(item.entry) for item in found.stored]) or not found.stored:
        return 0
    if not found.faults:  # otherwise what can't be read would be lost
        Root(root).delete(FILE)
    return len(found.stored)


def _has_answers(root: Path) -> bool:
    try:
        return os.path.lexists(answers_file(root).path)
    except OSError:
        return True
