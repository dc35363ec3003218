"""Toolkits: toolsets whose tools share a context and whose availability is a small state machine."""
