"""Every diagnostic: its code, sentences, fix and example stand together, in one module for each group.

A code is stable: it never gets another meaning. A group's module declares each `Code`, followed by the functions that
make its problems from data; nothing else makes a diagnostic. LD1xx are about reading files, their syntax and their
shape (`files`, `syntax`, `shape`), LD2xx names and references, LD3xx Python files, LD4xx agents' tools and
capabilities (`tools`), states (`machines`) and skills (`files`), LD5xx flows, LD6xx approval rules (`rules`),
assertions and bounds (`proofs`) and the lock (`lock`), LD7xx models, the environment and what changes between two
runs, LD8xx unused things, LD9xx test files (`cases`).
"""
