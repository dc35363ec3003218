"""What a run leaves: events, results, histories, and the protocol of what keeps them."""
