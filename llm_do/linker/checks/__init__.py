"""Checks of a project whose names are known, one module per subject."""
