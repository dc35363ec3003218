"""Tools as the runtime knows them: their traits, schemas, output, and the agent's toolbox."""
