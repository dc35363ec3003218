"""What becomes of kept data that isn't as it was written: by another version, by another program, or by a fault."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from llm_do.errors import LlmDoError, StoreError
from llm_do.text.exception_text import first_fault

__all__ = ["UNREADABLE", "object_of", "reading", "texts_of"]

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What is raised by code that reads JSON of another shape than it writes."""


@contextmanager
def reading(what: str) -> Generator[None]:
    """Raise `StoreError` where kept data can't be read.

    Args:
        what: What is read, as the subject of a sentence.
    """
    try:
        yield
    except LlmDoError:
        raise
    except UNREADABLE as error:
        raise StoreError(
            f"{what} can't be read: {type(error).__name__}: {first_fault(error)[:200]}",
            hint="The store was changed by another program or another version, or it is damaged.",
        ) from error


def object_of(text: str) -> dict[str, Any]:
    """Read a JSON object; raise `ValueError` if it is anything else."""
    if text == "{}":  # most are
        return {}
    data: object = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError(f"{text[:40]!r} is not a JSON object")
    return cast("dict[str, Any]", data)


def texts_of(text: str) -> tuple[str, ...]:
    """Read a JSON list of texts; raise `ValueError` if it is anything else."""
    data: object = json.loads(text)
    if not isinstance(data, list) or not all(isinstance(each, str) for each in cast("list[object]", data)):
        raise ValueError(f"{text[:40]!r} is not a JSON list of texts")
    return tuple(cast("list[str]", data))
