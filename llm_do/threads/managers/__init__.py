"""Threads for code outside a run: messages, state, the journal, import and export."""
