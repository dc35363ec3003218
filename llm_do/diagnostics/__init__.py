"""What is wrong with a project, as values: a diagnostic, its location, and the table of codes."""
