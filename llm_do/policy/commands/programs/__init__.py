"""The grammar of the programs that are known, as tables; `llm_do.policy.commands.grammar` explains and reads them."""
