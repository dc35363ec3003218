"""Analyse a project without running it: its names, the tools of each agent, permissions."""
