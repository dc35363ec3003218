"""The events of a run: their kinds, and who receives them."""
