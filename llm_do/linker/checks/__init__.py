"""What can be wrong with a project whose names are known: one module a subject."""
