"""Contexts, and the types whose schemas come from them."""
