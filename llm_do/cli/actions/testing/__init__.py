"""What `llm-do test` does: options, cases, runs, reports."""
