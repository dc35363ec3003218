"""Bytes below one folder and nowhere else: the confined root, walks through it, globs and ignore rules.

Who may touch which of those files is for the callers; nothing here knows agents, tools or policies.
"""
