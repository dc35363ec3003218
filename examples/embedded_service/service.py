"""A flow as a service: its runs over HTTP, approvals that clients answer, and a page that shows it all.

    SERVICE_KEYS="ann=a long secret,bob=another" uvicorn service:app

Each key belongs to a user, who sees and answers their own runs only. `docs/page.md` describes the interface.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from llm_do import Project
from llm_do.web import Service


def keys_of(text: str) -> dict[str, str | None]:
    """Read `USER=KEY,USER=KEY` as the keys with their users."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key.strip(): user.strip() for user, _, key in pairs}


KEYS = keys_of(os.environ.get("SERVICE_KEYS", ""))

app = Service(Project.load(Path(__file__).parent), keys=KEYS or None)
"""The application for a server."""

if not KEYS:
    print(f"SERVICE_KEYS is not set; open http://127.0.0.1:8000/#key={app.key}", file=sys.stderr)
