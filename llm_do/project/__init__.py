"""A project as values: agents, flows, tools and what they are named by, for whatever links or runs them."""
