"""How providers are reached: HTTP clients, and what is read of an answer."""
