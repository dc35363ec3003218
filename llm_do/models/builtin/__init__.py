"""Models that need no provider: the local one, and scripted answers."""
