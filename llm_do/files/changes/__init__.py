"""Changes of files: carried out, kept so that they can be undone, undone."""
