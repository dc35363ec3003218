"""A project as an MCP server: its agents and flows are the tools of any MCP client.

A run goes as it does elsewhere; what is different is who is asked (`client_questions`) and who sees the events
(`client_call`). The room is imported by `llm-do mcp` alone.
"""
