"""Errors of a store that its users treat differently from others."""

from __future__ import annotations

from llm_do.errors import StoreError

__all__ = ["LostStoreError", "ReadOnlyStoreError", "UncertainCommitError"]


class LostStoreError(StoreError):
    """The store was deleted while it was in use."""


class ReadOnlyStoreError(StoreError):
    """The store can be read, but not written."""


class UncertainCommitError(StoreError):
    """The connection was lost at a commit, and what became of it can't be asked: it must not be repeated blindly."""
