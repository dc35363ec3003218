"""Access to threads from outside a run: messages, state, the journal, import and export."""
