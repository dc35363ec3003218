"""What `llm-do map` does."""
