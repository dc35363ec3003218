"""Cassettes: the model requests of runs in a file, recorded and answered from there."""
