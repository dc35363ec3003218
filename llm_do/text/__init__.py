"""Text made fit to show, send or keep: spelling, escapes, sanitized display, canonical JSON. Knows nothing of ours."""
