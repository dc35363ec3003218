"""From nodes to values: strict models, and what pydantic found, explained."""
