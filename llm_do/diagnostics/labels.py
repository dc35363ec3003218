"""How a file is named in diagnostics."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["file_label"]


def file_label(root: Path, path: Path) -> str:
    """The name of a file in diagnostics: relative to the root, with bytes that aren't UTF-8 escaped."""
    text = str(path)
    prefix = f"{root}{os.sep}"
    text = text[len(prefix) :] if text.startswith(prefix) else text
    text = text.replace(os.sep, "/")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
