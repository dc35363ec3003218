"""`python -m llm_do` is the same as `llm-do`."""

from __future__ import annotations

import os
import sys

# Python puts the current folder first on the path, where a file named like a library would be taken for that library.
_own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
if not sys.flags.safe_path and sys.path and sys.path[0] == os.getcwd() != _own:  # noqa: PTH109
    del sys.path[0]

if __name__ == "__main__":
    from llm_do.cli import main

    main()
