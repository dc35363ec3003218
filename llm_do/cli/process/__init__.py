"""The process itself: its streams, signals, standard input and stack."""
