"""Memories: their rows, and the store of a process."""
