"""One run of a session, and what the runs of a session share."""
