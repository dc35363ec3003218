"""Which names files may have declared that couldn't be read, so that these names aren't reported as unknown."""

from __future__ import annotations

import re
from pathlib import Path

from llm_do._bounded_files import read_bounded_text
from llm_do.linker.analysis.names import Broken
from llm_do.linker.python.python_files import PythonFiles
from llm_do.linker.sources.project_files import ProjectFiles

__all__ = ["broken_names"]


def broken_names(files: ProjectFiles, python: PythonFiles) -> Broken:
    """Return the names that a project's broken files, and Python files that weren't imported, may have declared."""
    names = {name for source in files.agents if source.failed for name in source.names}
    failed = [path for path, label in zip(files.python, files.python_labels, strict=True) if label in python.failed]
    names |= {path.stem for path in failed}
    texts = [_text_of(path) for path in failed]
    words = {word for text in texts for word in re.findall(r"[\w-]+", text)}
    # Without importing them, it isn't known which names a `*` brings in.
    starred = bool(python.unread) and any("import *" in text for text in texts)
    return Broken(names, words, python=bool(failed), anything=files.lists_unread or files.sections_unread or starred)


def _text_of(path: Path) -> str:
    """The text of a file that could not be imported, empty when it can't be read."""
    try:
        return read_bounded_text(path, errors="replace")
    except OSError:
        return ""
