"""What `llm-do approvals` does with what was recorded."""
