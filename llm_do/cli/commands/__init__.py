"""One thin module a command: its options and its help, imported when that command runs."""
