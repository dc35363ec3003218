"""`python -m llm_do` is the same as `llm-do`."""

from __future__ import annotations

from llm_do.cli import main

if __name__ == "__main__":
    main()
