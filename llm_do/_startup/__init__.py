"""What makes the package quick to start. docs/design/startup.md says what each part saves; what saves little goes."""
