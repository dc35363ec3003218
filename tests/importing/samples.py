"""Subagents in the ways people write them, and the agents that they mean."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["SAMPLES", "Sample"]

RO = "filesystem_project_ro"
RW = "filesystem_project"
ALL: dict[str, list[str]] = {RW: [], "commands": [], "todo": []}
READ_GREP = {RO: ["read_file", "search_files"]}


@dataclass(frozen=True)
class Sample:
    """A file, and what is expected of its agent.

    Args:
        text: The file.
        toolsets: The toolsets with the tools that each includes, all of them if there are none.
        name: The agent's name.
        description: Its description.
        notes: Parts of the notes about it, in order; None if they are of no interest.
        more: Other keys of the agent file.
        body: Its instructions.
        file: The file's name.
    """

    text: str
    toolsets: dict[str, list[str]] = field(default_factory=lambda: ALL)
    name: str = "helper"
    description: str = "Helps."
    notes: tuple[str, ...] | None = None
    more: dict[str, object] = field(default_factory=dict[str, object])
    body: str = "Help."
    file: str = "helper.md"


def head(*lines: str) -> str:
    """A file with a name, a description and further lines."""
    return "\n".join(["---", "name: helper", "description: Helps.", *lines, "---", "", "Help.", ""])


def described(*lines: str) -> str:
    """A file with a description of these lines."""
    return "\n".join(["---", "name: helper", *lines, "tools: Read, Grep", "---", "", "Help.", ""])


def tools(*lines: str, expected: dict[str, list[str]], notes: tuple[str, ...] = ()) -> Sample:
    return Sample(head(*lines), expected, notes=notes)


def description(*lines: str, expected: str, notes: tuple[str, ...] = ()) -> Sample:
    return Sample(described(*lines), READ_GREP, description=expected, notes=notes)


DIALOGUE = """\
Use this agent when code was written. Examples:

<example>
Context: The user wrote a function.
user: "Please check it"
assistant: "I'll use the helper agent"
<commentary>
Note: it was just written.
</commentary>
</example>"""

_TEXT: dict[str, Sample] = {
    "plain": description("description: Helps.", expected="Helps."),
    "a colon": description("description: Use when: asked", expected="Use when: asked"),
    "two colons": description("description: Role: helper. Use: always", expected="Role: helper. Use: always"),
    "a hash": description("description: The #1 helper, see # 2", expected="The #1 helper, see # 2"),
    "a tab": description("description:\tHelps\twith tabs.", expected="Helps\twith tabs."),
    "brackets": description("description: [BETA] Helps.", expected="[BETA] Helps."),
    "braces": description("description: {experimental} Helps.", expected="{experimental} Helps."),
    "a star": description("description: *MUST* be used", expected="*MUST* be used"),
    "an ampersand": description("description: & more", expected="& more"),
    "a percent sign": description("description: % of tests", expected="% of tests"),
    "an at sign": description("description: @helper knows", expected="@helper knows"),
    "a backtick": description("description: `helper` knows", expected="`helper` knows"),
    "an exclamation mark": description("description: !important Helps.", expected="!important Helps."),
    "a question mark": description("description: ? what is it", expected="? what is it"),
    "a bar": description("description: | Helps.", expected="| Helps."),
    "a dash": description("description: - Helps.", expected="- Helps."),
    "a word of YAML": description("description: yes", expected="yes"),
    "a number": description("description: 42", expected="42"),
    "double quotes": description('description: "Helps: well"', expected="Helps: well"),
    "single quotes": description("description: 'It''s helpful: yes'", expected="It's helpful: yes"),
    "an apostrophe in single quotes": description("description: 'It's helpful'", expected="It's helpful"),
    "quotes in quotes": description('description: "Use "this" agent: always"', expected='Use "this" agent: always'),
    "two quotations": description('description: "One" and "two" help', expected='"One" and "two" help'),
    "an unclosed quote": description('description: "Helps a lot', expected="Helps a lot"),
    "escapes in quotes": description('description: "Line one\\nline \\"two\\""', expected='Line one\nline "two"'),
    "a wrong escape in quotes": description('description: "A \\d pattern"', expected="A \\d pattern"),
    "a literal block": description("description: |", "  One.", "", "  Two: three.", expected="One.\n\nTwo: three."),
    "a folded block": description("description: >-", "  One", "  two.", "", "  Three.", expected="One two.\nThree."),
    "a folded block with tabs": description("description: >", "\tOne", "\ttwo.", expected="One two."),
    "a block that isn't indented": description("description: |", "One.", "Two.", expected="One.\nTwo."),
    "continued lines": description("description: One", "  two: three", expected="One two: three"),
    "continued lines without indent": description("description: One", "two three", expected="One\ntwo three"),
    "line breaks as two characters": description("description: " + DIALOGUE.replace("\n", "\\n"), expected=DIALOGUE),
    "a path with backslashes": description("description: Reads C:\\new\\notes", expected="Reads C:\\new\\notes"),
    "a dialogue over lines": description(*f"description: {DIALOGUE}".split("\n"), expected=DIALOGUE),
    "a dialogue in quotes": description(
        'description: "' + DIALOGUE.replace("\n", "\\n").replace('"', '\\"') + '"', expected=DIALOGUE
    ),
    "emoji": description("description: 🚀 Helps ✅ – fast", expected="🚀 Helps ✅ – fast"),
    "Chinese": description("description: 代码审查：专家", expected="代码审查：专家"),
    "an empty description": description("description:", expected=""),
    "no space after the key": description("description:Helps.", expected="Helps."),
    "a comment line": description("# who it is", "description: Helps.", expected="Helps."),
    "keys in capitals": Sample(
        "---\nName: helper\nDescription: Helps.\nTools: Read, Grep\n---\nHelp.", READ_GREP, notes=()
    ),
    "quoted keys": Sample(
        '---\n"name": helper\n"description": Helps.\n"tools": Read, Grep\n---\nHelp.', READ_GREP, notes=()
    ),
    "indented keys": Sample(
        "---\n  name: helper\n  description: Helps.\n  tools: Read, Grep\n---\nHelp.", READ_GREP, notes=()
    ),
    "long examples": Sample(
        described(f"description: Helps.\\n\\nExamples:\\n<example>{'x' * 2000}</example>"),
        READ_GREP,
        notes=("the examples in the description are left out",),
    ),
    "a long description": Sample(
        described(f"description: {'word ' * 300}"),
        READ_GREP,
        description=("word " * 300)[:1023].rstrip() + "…",
        notes=("the description is cut short",),
    ),
}

_TOOLS: dict[str, Sample] = {
    "no tools": tools(expected=ALL, notes=("no list of tools",)),
    "all tools": tools("tools: '*'", expected=ALL, notes=("no list of tools",)),
    "all tools in words": tools("tools: All tools", expected=ALL, notes=("no list of tools",)),
    "text": tools("tools: Read, Grep", expected=READ_GREP),
    "text without commas": tools("tools: Read Grep", expected=READ_GREP),
    "text in quotes": tools('tools: "Read, Grep"', expected=READ_GREP),
    "small letters": tools("tools: read, grep", expected=READ_GREP),
    "a list in brackets": tools("tools: [Read, Grep]", expected=READ_GREP),
    "a list of quoted names": tools("""tools: ["Read", 'Grep']""", expected=READ_GREP),
    "an unclosed bracket": tools("tools: [Read, Grep", expected=READ_GREP),
    "a list over lines": tools("tools: [", "  Read,", "  Grep,", "]", expected=READ_GREP),
    "a list with dashes": tools("tools:", "  - Read", "  - Grep", expected=READ_GREP),
    "a list that isn't indented": tools("tools:", "- Read", "- Grep", expected=READ_GREP),
    "a list with tabs": tools("tools:", "\t- Read", "\t- Grep", expected=READ_GREP),
    "a list with comments": tools("tools:", "  - Read # files", "  # - Bash", "  - Grep", expected=READ_GREP),
    "switches": tools("tools:", "  read: true", "  grep: true", "  write: false", expected=READ_GREP),
    "switches in braces": tools("tools: {read: true, grep: true}", expected=READ_GREP),
    "switches that only turn off": tools(
        "tools:",
        "  write: false",
        "  edit: false",
        "  bash: false",
        expected={
            RW: ["read_file", "list_files", "search_files", "make_directory", "move_file", "delete_file"],
            "todo": [],
        },
        notes=("no list of tools",),
    ),
    "an empty list": tools("tools: []", expected={}, notes=("`tools` is empty",)),
    "nothing": tools("tools:", expected={}, notes=("`tools` is empty",)),
    "every reader": tools("tools: Read, Grep, Glob, LS", expected={RO: []}),
    "writers": tools("tools: Read, Write, Edit, MultiEdit", expected={RW: ["read_file", "write_file", "edit_file"]}),
    "commands": tools("tools: Bash, BashOutput", expected={"commands": []}, notes=("`BashOutput` isn't needed",)),
    "commands with patterns": tools(
        "tools: Bash(git diff:*, git log:*), Read, Grep",
        expected={**READ_GREP, "commands": []},
        notes=("`Bash(git diff:*, git log:*)` became `shell`, where each command needs approval",),
    ),
    "files with patterns": tools(
        "tools: Read(src/**), Grep", expected=READ_GREP, notes=("`Read(src/**)` became `read_file` without",)
    ),
    "the to-do list": tools("tools: TodoWrite, AskUserQuestion", expected={"todo": [], "ask_user": []}),
    "the web": Sample(
        head("tools: WebSearch, WebFetch"),
        {"http": ["http_get"]},
        notes=("the web is searched by the model's provider",),
        more={"server_side_tools": [{"tool_type": "web_search"}]},
    ),
    "pages of a host": tools(
        "tools: WebFetch(domain:docs.example.org)",
        expected={"http": ["http_get"]},
        notes=("a rule such as `http_get(https://docs.example.org/**)` under `approvals`",),
    ),
    "pages of a host that are denied": tools(
        "tools: Read, Grep, WebFetch",
        "disallowedTools: WebFetch(domain:evil.example)",
        expected={**READ_GREP, "http": ["http_get"]},
        notes=("write a rule for `http_get(https://evil.example/**)` under `approvals.deny`",),
    ),
    "servers": tools(
        "tools: Read, Grep, mcp__github__get_issue, mcp__linear, mcp__x__*",
        expected=READ_GREP,
        notes=("the MCP server `github`", "the MCP server `linear`", "the MCP server `x`"),
    ),
    "unknown tools": tools(
        "tools: Read, Grep, Gerp, Telepathy",
        expected=READ_GREP,
        notes=("`Gerp` is unknown and left out; `Grep` may be meant", "`Telepathy` is unknown and left out"),
    ),
    "tools of the program": tools(
        "tools: Read, Grep, ExitPlanMode, Skill, NotebookEdit, Task",
        expected=READ_GREP,
        notes=("`ExitPlanMode` isn't needed", "`NotebookEdit` is left out", "`Task` names no"),
    ),
    "other agents that don't exist": tools(
        "tools: Read, Grep, Agent(ghost)", expected=READ_GREP, notes=("it may call `ghost`, which is not imported",)
    ),
    "denied tools": tools(
        "disallowedTools: Bash, Write, Edit",
        expected={
            RW: ["read_file", "list_files", "search_files", "make_directory", "move_file", "delete_file"],
            "todo": [],
        },
        notes=("no list of tools",),
    ),
    "a denied command": tools(
        "tools: Bash, Read, Grep",
        "disallowedTools: Bash(rm:*)",
        expected={**READ_GREP, "commands": []},
        notes=("`Bash(rm:*)` can't be denied in an agent file",),
    ),
    "the key of commands": tools("allowed-tools: Read, Grep", expected=READ_GREP),
}

_OTHERS: dict[str, Sample] = {
    "an alias of a model": Sample(
        head("tools: Read, Grep", "model: sonnet"), READ_GREP, notes=(), more={"model": "sonnet"}
    ),
    "an alias with a long context": Sample(
        head("tools: Read, Grep", "model: Opus[1m]"), READ_GREP, notes=(), more={"model": "opus"}
    ),
    "a commented model": Sample(
        head("tools: Read, Grep", "model: haiku # fast"), READ_GREP, notes=(), more={"model": "haiku"}
    ),
    "the caller's model": Sample(head("tools: Read, Grep", "model: inherit"), READ_GREP, notes=()),
    "a model's full name": Sample(
        head("tools: Read, Grep", "model: claude-sonnet-4-5"),
        READ_GREP,
        notes=(),
        more={"model": "anthropic:claude-sonnet-4-5"},
    ),
    "another provider's model": Sample(
        head("tools: Read, Grep", "model: openai/gpt-5"), READ_GREP, notes=("`model: openai/gpt-5` is no model",)
    ),
    "no questions": Sample(
        head("tools: Bash", "permissionMode: bypassPermissions"),
        {"commands": []},
        notes=("`permissionMode: bypassPermissions` is left out",),
    ),
    "edits without questions": Sample(
        head("tools: Edit", "permission-mode: acceptEdits"),
        {RW: ["edit_file"]},
        notes=("`permissionMode: acceptEdits` is left out",),
    ),
    "only plans": Sample(
        head("tools: Read, Grep, Write, Bash", "permissionMode: plan"),
        {**READ_GREP, "shell_readonly": []},
        notes=(),
    ),
    "hooks": Sample(
        head("tools: Read, Grep", "hooks:", "  Stop:", "    - hooks:", "        - command: rm -rf /"),
        READ_GREP,
        notes=("`hooks` are left out",),
    ),
    "servers of its own": Sample(
        head("tools: Read, Grep", "mcpServers:", "  - github", "  - local:", "      command: evil"),
        READ_GREP,
        notes=("`mcpServers` is left out",),
    ),
    "everything else": Sample(
        head(
            *("tools: Read, Grep", "skills: [a]", "memory: user", "background: true", "isolation: worktree"),
            *("color: red", "version: 1.0", "sparkle: yes", "initialPrompt: Go"),
        ),
        READ_GREP,
        notes=(
            "`memory`",
            "`background`",
            "`isolation`",
            "`color`",
            "`version`",
            "`sparkle`",
            "`initialP",
            "skill `a`",
        ),
    ),
    "limits": Sample(
        head("tools: Read, Grep", "maxTurns: 12", "effort: high"),
        READ_GREP,
        notes=(),
        more={"max_steps": 12, "model_settings": {"thinking": "high"}},
    ),
    "limits that aren't": Sample(
        head("tools: Read, Grep", "maxTurns: many", "effort: heroic"), READ_GREP, notes=("`maxTurns: many`", "`effort")
    ),
    "a key twice": Sample(
        head("tools: Read, Grep", "model: inherit", "tools: Bash"), READ_GREP, notes=("`tools` appears twice",)
    ),
    "a name with blanks": Sample(
        "---\nname: Code Reviewer\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "code-reviewer",
        notes=("the name is `code-reviewer` instead of `Code Reviewer`",),
    ),
    "a name with other letters": Sample(
        "---\nname: prüfer/3\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "prufer-3",
        notes=("the name is `prufer-3`",),
    ),
    "a name that begins with a digit": Sample(
        "---\nname: 3d-artist\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "agent-3d-artist",
        notes=("the name is `agent-3d-artist`",),
    ),
    "a name that is taken": Sample(
        "---\nname: todo\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "todo-agent",
        notes=("the name is `todo-agent`",),
    ),
    "a name of no letters": Sample(
        "---\nname: 助手\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "assistant",
        notes=("the name is `assistant`",),
        file="assistant.md",
    ),
    "a long name": Sample(
        f"---\nname: {'long-' * 20}\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        ("long-" * 20)[:64],
        notes=("the name is `long-",),
    ),
    "no name": Sample(
        "---\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        "git-wizard",
        notes=("it has no name; it is called `git-wizard`",),
        file="git wizard.md",
    ),
    "no description": Sample(
        "---\nname: helper\ntools: Read, Grep\n---\nHelp.", READ_GREP, description="", notes=("it has no description",)
    ),
    "no instructions": Sample(
        "---\nname: helper\ndescription: Helps.\ntools: Read, Grep\n---\n",
        READ_GREP,
        notes=("it has no instructions",),
        body="",
    ),
    "a byte-order mark and Windows' line ends": Sample(
        "\ufeff---\r\nname: helper\r\ndescription: Helps.\r\ntools: Read, Grep\r\n---\r\n\r\nHelp.\r\nWell.\r\n",
        READ_GREP,
        notes=(),
        body="Help.\nWell.",
    ),
    "blank lines and a comment first": Sample(
        "\n<!-- a licence -->\n\n---\nname: helper\ndescription: Helps.\ntools: Read, Grep\n---\nHelp.",
        READ_GREP,
        notes=(),
    ),
    "blanks after the lines": Sample(
        "--- \nname: helper  \ndescription: Helps.  \ntools: Read, Grep \n----\nHelp.", READ_GREP, notes=()
    ),
    "instructions with lines and braces": Sample(
        head("tools: Read, Grep") + "\n---\n\n# {{name}} `x`\n\n    code\n\n---\nname: other\n",
        READ_GREP,
        notes=(),
        body="Help.\n\n---\n\n# {{name}} `x`\n\n    code\n\n---\nname: other",
    ),
    "instructions that begin with a blank": Sample(
        "---\nname: helper\ndescription: Helps.\ntools: Read, Grep\n---\n\n    Help.\n", READ_GREP, body="    Help."
    ),
}

SAMPLES: dict[str, Sample] = {
    **{f"description: {name}": sample for name, sample in _TEXT.items()},
    **{f"tools: {name}": sample for name, sample in _TOOLS.items()},
    **_OTHERS,
}
