"""Agents and skills of other programs as ours: Claude Code's subagents, which are Markdown with a frontmatter.

What is read is data: nothing in it is run, and no permission that it grants is taken over. `frontmatter` and
`field_values` read a file, `tool_names` knows the tools, `translation` makes an agent of it, `agent_text` writes that
down, and `folder_plan` decides about names and files; `skill_translation` and `skill_plan` do so for skills. Nothing
here touches a file; `llm_do.cli.actions.importing` does.
"""
