"""Durable runs in the SQLite store."""
