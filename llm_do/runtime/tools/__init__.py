"""Tools in the runtime: their traits, gates and output, and the agent's toolbox."""
