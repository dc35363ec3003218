"""Commands that set up a machine, a project or an editor, and run nothing."""
