"""Durable runs in the stores."""
