"""State machines of tools: gates, the context that tools share, and parameter types that depend on it."""
