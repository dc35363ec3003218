"""Models of objects in the manifest: what limits a run, and what its calls may do."""
