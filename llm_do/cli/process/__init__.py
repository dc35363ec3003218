"""The process itself: its streams, signals and standard input."""
