"""What `scripts/reference.py` makes the pages of docs/reference with: one module a kind of page."""
