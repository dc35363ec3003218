"""From text to nodes that know their location: YAML, JSON, frontmatter and flow expressions."""
