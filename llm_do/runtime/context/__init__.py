"""The context of a call and the state that its run shares: budget, hooks, resources."""
