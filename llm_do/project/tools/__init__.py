"""What is known of tools before a run: facts, schemas, and the built-in toolsets."""
