"""A project's title: its name and description in one line."""

from __future__ import annotations

__all__ = ["title"]


def title(name: str | None, description: str | None) -> str | None:
    """Join a project's name and description in one line; None if it has neither.

    Example:
        >>> title("receipts", "Reads\\nreceipts."), title(None, None)
        ('receipts: Reads receipts.', None)
    """
    parts = [" ".join(part.split()) for part in (name, description) if part]
    return ": ".join(part for part in parts if part) or None
