"""Several agents under one name: workflows, handoffs, teams.

Declaring them in code is `swarm`, running them `modes`.
"""
