"""The runs of a store: their beginnings and ends, their owners, and what becomes of killed ones."""
