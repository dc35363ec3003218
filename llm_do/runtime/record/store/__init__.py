"""The values that a run and its store exchange."""
