"""What `llm-do map` and `llm-do worker` do."""
