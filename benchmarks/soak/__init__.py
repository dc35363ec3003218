"""A soak: everything at once on one store for as long as one likes, with kills, and a count of what came of it."""
