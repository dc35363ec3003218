"""What the stores in databases share: rows, migrations, transactions, the end of runs and their recovery."""
