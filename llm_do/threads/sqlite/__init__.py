"""The store in SQLite: connection, rows, migrations, endings and recovery of runs."""
