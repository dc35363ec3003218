"""What only projects written for llm-do 0.3 need; version 1.0 removes it, and tests/compat with it.

These are here. The path that 0.3 has for each still leads here, and goes too:

- `llm_do.toolsets.filesystem.FileSystemToolset`, `ReadOnlyFileSystemToolset` and `FileSystemConfig`: configure a
  toolset of type `filesystem` in the manifest.
- `llm_do.toolsets.shell.ShellToolset`, `ShellConfig` and `ShellRule`: configure a toolset of type `shell`.
- `llm_do.runtime.events.RuntimeEvent`: use the events of a run, `llm_do.Event`, or a class of the project's own.
- `llm_do.runtime.args.get_display_text`: join the texts of the prompt.
- `llm_do.compat.moved_names.successor`: it only words the errors about names that have gone from `llm_do`.

These stay where they are until then, because they are only other names of what is beside them:

- `llm_do.runtime` and `llm_do.runtime.events` as paths of public names: import them from `llm_do`.
- `llm_do.runtime.Runtime.run_entry`: use `Runtime.run(input, entry=entry)`.
- `llm_do.runtime.CallContext.call_agent` and `llm_do.toolkits.ToolkitContext.call_agent`: use `call`.
- `llm_do.toolsets.agent.agent_as_toolset`: use `AgentToolset`.
- `llm_do.linker.python.plain_tools.allow_plain_tools`, for `@toolset.tool` on functions without a context: write
  `@toolset.tool_plain`.
- The argument `max_chars` of the built-in `read_file`: use `offset` and `limit`.
- The setting `auth_mode` of the manifest: leave it out.
"""
