"""A network that isn't there: connecting anywhere fails the test."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

__all__ = ["no_network"]


@contextmanager
def no_network() -> Iterator[None]:
    """Refuse every connection, and keys of providers too: nothing may need them."""
    with pytest.MonkeyPatch.context() as patch:
        for prefix in ("OPENAI", "ANTHROPIC"):
            patch.delenv(f"{prefix}_API_KEY", raising=False)
            patch.delenv(f"{prefix}_BASE_URL", raising=False)
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _refuse)
        yield


def _refuse(*_: object) -> NoReturn:
    raise AssertionError("a replay needs no network")
