"""The store in a SQLite file: its connection, its files, and the locks beside it."""
