"""A project's Python files: imported in a namespace of their own, what they define and export."""
