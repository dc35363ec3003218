"""What `llm-do serve` and `llm-do mcp` do, and the page of one run as a file."""
