"""One tool call, from its gates to its one result."""
