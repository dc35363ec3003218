"""Event loops, worker threads, cancellation, and gathering results in order; independent of agents."""
