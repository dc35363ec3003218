"""The store in a PostgreSQL database: its connection, its statements, and the locks that say which process is alive."""
