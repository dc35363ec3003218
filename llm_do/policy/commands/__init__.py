"""Commands as rules see them: how a line is parsed, and what the words of each program mean."""
