"""Test cases: what `tests/*.test.yaml` says, how a case is run, and what came of it."""
