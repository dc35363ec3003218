"""The terminal: what it can show, how wide text is, and reading from it."""
