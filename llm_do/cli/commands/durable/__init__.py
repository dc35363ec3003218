"""Commands that carry out durable runs: one again, or many inputs in this process and others."""
