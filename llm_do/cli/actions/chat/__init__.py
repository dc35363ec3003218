"""What `llm-do chat` does."""
