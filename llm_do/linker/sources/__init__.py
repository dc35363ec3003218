"""A project's files: finding the root, listing, reading, and converting them to declarations."""
