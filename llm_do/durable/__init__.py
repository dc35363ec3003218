"""Batches: many inputs of one entry, each a durable run, shared by processes, with the results in order.

How a single run is made durable is in `llm_do.runtime.steps`; how claims are stored, in `llm_do.threads`.
"""
