"""Event loops, worker threads, cancellation, ordered results, and what ends with the process; independent of agents."""
