"""Several agents under one name: workflows, handoffs, teams.

`swarm` declares them in code; `modes` runs them.
"""
