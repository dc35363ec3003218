"""What the command line does with `llm-do.lock`: writes it, compares it, and keeps approvals in it."""
