"""`python -m llm_do` is the same as `llm-do`."""

from __future__ import annotations

import os
import sys

# Python puts the current folder first on the path, where a file named like a library would be taken for that library.
_own = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
try:
    _current = os.getcwd()  # noqa: PTH109
except OSError:  # it has been deleted
    _current = ""
if not sys.flags.safe_path and sys.path and sys.path[0] == _current != _own:
    del sys.path[0]

if __name__ == "__main__":
    from llm_do.cli import main

    main()
