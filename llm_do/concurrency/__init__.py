"""Event loops, worker threads, cancellation, and gathering results in order. Knows nothing of agents."""
