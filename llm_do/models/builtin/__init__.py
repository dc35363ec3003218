"""Models that need no provider: the local model and scripts."""
