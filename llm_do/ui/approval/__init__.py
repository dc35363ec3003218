"""The approval question: its words, and asking it at a terminal."""
