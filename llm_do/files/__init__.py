"""Access to the files below one folder and to no others: the confined root, walks, globs and ignore rules.

Callers decide which of these files may be used; this package is independent of agents, tools and policies.
"""
