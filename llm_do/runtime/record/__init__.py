"""What a run produces: events, results and histories, and the protocols of the stores that keep them."""
