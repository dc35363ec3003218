"""Tools in the runtime: their traits, schemas, output, and the agent's toolbox."""
