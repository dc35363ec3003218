"""What `scripts/reference.py` makes the pages of docs/reference with: one module a kind of page."""

from __future__ import annotations

__all__ = ["MissingExampleError"]


class MissingExampleError(Exception):
    """A page can't be made, because nothing shows one of the things that it lists; the message says where to add it."""
