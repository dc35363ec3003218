"""Models of objects in the manifest and other files: flows, threads, limits, and what calls may do."""
