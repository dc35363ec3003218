"""`llm-do import`: finds what Claude Code has, and writes what becomes of it."""
