"""What `llm-do undo` does, and what `llm-do runs show` says about it."""
