"""One model request: which model, what it costs, retries, compaction before it."""
