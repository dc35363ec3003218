"""A run as it goes: lines, the live tree, and the transcript above it."""
