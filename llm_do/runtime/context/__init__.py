"""What code in a call sees and what its run shares: context, state, budget, hooks, resources."""
