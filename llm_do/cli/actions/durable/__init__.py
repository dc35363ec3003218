"""What commands do with durable runs: continue them, and answer what they ask."""
