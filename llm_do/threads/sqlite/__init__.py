"""The SQLite store: connection, rows, migrations, the end of runs and their recovery."""
