"""One call of an agent, a flow or a function by its name, with its scope and its context."""
