"""Runs in a browser: as a file that needs no server, and served, with an interface over HTTP.

`Service` is the application of a server. It needs Starlette, so it is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do._startup.lazy import lazy_exports

_EXPORTS = {"Service": "llm_do.web.service"}

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)

__all__ = sorted(_EXPORTS)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from llm_do.web.service import Service as Service
