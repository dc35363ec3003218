"""State machines of tools: gates, states, and the calls that change them."""
