"""The steps of a durable run: what has happened, so that it doesn't happen again."""
