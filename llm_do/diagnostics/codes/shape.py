"""LD120 to LD190: the keys and values of a manifest and an agent file."""

from __future__ import annotations

from collections.abc import Sequence

from llm_do.diagnostics.codes.code import Code, Problem
from llm_do.text.words import did_you_mean, truncate_end

LD120 = Code(
    "LD120",
    "Unknown key",
    "error",
    "The key is not part of the format; most often it is misspelled.",
    "leave it out",
    wrong="modle: openai:gpt-5-mini",
    right="model: openai:gpt-5-mini",
)


_SETTINGS = "settings of the model belong under `model_settings`: `model_settings: {{{key}: ...}}`"
_TEXT = "the instructions are the text below the closing ---"

_ELSEWHERE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("temperature", "top_p", "top_k", "max_tokens", "seed", "stop", "timeout", "base_url", "reasoning_effort"),
        ("model_settings", _SETTINGS),
    ),
    **dict.fromkeys(("instructions", "prompt", "system", "system_prompt", "content"), ("handoffs", _TEXT)),
    **dict.fromkeys(("agents", "subagents", "sub_agents"), ("handoffs", "list other agents under `toolsets`")),
    **dict.fromkeys(
        ("mcp", "mcp_servers", "mcpServers", "servers"),
        (
            "handoffs",
            'configure it under `toolsets` in project.json: `"NAME": {{"type": "mcp", "command": [...]}}`',
        ),
    ),
    **dict.fromkeys(
        ("permissions", "approval", "approvals"),
        ("handoffs", "rules about approval belong under `approvals` in project.json"),
    ),
    **dict.fromkeys(
        ("output_type", "output_schema", "schema"), ("output", "write it under `output`, as a JSON Schema")
    ),
    **dict.fromkeys(("max_turns", "max_iterations"), ("max_steps", "`max_steps` limits the model requests")),
    "provider": ("compatible_models", "the provider is the first part of the model's name: `model: openai:gpt-5-mini`"),
    **dict.fromkeys(
        ("tools", "functions", "python"), ("python_files", 'list Python files: `"python_files": ["tools.py"]`')
    ),
    **dict.fromkeys(("allow", "deny", "ask", "rules"), ("python_files", "rules belong under `approvals`")),
    **dict.fromkeys(
        ("max_depth", "budget", "run_timeout", "approval_mode", "max_concurrency"),
        ("python_files", "limits and modes belong under `runtime`"),
    ),
    **dict.fromkeys(
        ("env", "environment", "api_key", "api_keys"),
        ("python_files", "keys of providers are read from the environment, or from `.env` beside project.json"),
    ),
    "main": ("python_files", 'the entry is `"entry": {{"agent": NAME}}`'),
}
"""Keys that people try: a key that stands beside them where they are meant, and what to write."""


def _elsewhere(key: str, known: Sequence[str]) -> str | None:
    beside, hint = _ELSEWHERE.get(key, ("", ""))
    return hint.format(key=key) if beside in known else None


def unknown_key(key: str, holder: str, known: Sequence[str]) -> Problem:
    """A key, the path of what it is in, and the keys that may stand there."""
    hint = _elsewhere(key, known) or did_you_mean(key, known)
    hint = hint or (f"the keys here are {', '.join(known)}" if known else None)
    return LD120.problem(f"unknown key `{truncate_end(key)}`" + (f" in `{holder}`" if holder else ""), hint)


LD121 = Code(
    "LD121",
    "Missing key",
    "error",
    "A required key is missing.",
    "add the key",
    wrong="---\ndescription: Greets.",
    right="---\nname: main\ndescription: Greets.",
)


def missing_key(key: str, holder: str) -> Problem:
    """A key, and what it should be in, such as `docs` in backticks; empty for the file."""
    return LD121.problem(f"the key `{key}` is missing" + (f" in {holder}" if holder else ""), f"add `{key}`")


def missing_entry() -> Problem:
    """A manifest without an entry."""
    return LD121.problem("the key `entry` is missing", 'add `"entry": {"agent": NAME}`')


def missing_server_address(server: str) -> Problem:
    """An MCP server that can't be reached."""
    return LD121.problem(f"the server `{server}` has neither `command` nor `url`", "add one of them")


LD122 = Code(
    "LD122",
    "Wrong type",
    "error",
    "The value's type is not the one that the key takes. Nothing is converted silently.",
    "write a value of the right type",
    wrong='"version": "1"',
    right='"version": 1',
)


def no_value(subject: str, alternative: str | None) -> Problem:
    """A key without a value, and what else can be done than giving it one."""
    hint = f"give it one, or {alternative}" if alternative else "give it one"
    return LD122.problem(f"{subject} has no value", hint)


def wrong_type(subject: str, expected: str, value: str, correction: str | None = None) -> Problem:
    """A value of the wrong type, and what to do where that is plain."""
    return LD122.problem(f"{subject} must be {expected}, not {value}", correction)


def invalid_value(subject: str, reason: str) -> Problem:
    """A value that pydantic refuses for another reason."""
    return LD122.problem(f"{subject}: {reason}")


LD123 = Code(
    "LD123",
    "Unknown value",
    "error",
    "The key takes one of a few values, and this isn't one of them.",
    "write one of the allowed values",
    wrong='"runtime": {"approval_mode": "approve-all"}',
    right='"runtime": {"approval_mode": "approve_all"}',
)


def unknown_value(subject: str, allowed: Sequence[str], shown: str, text: str | None) -> Problem:
    """A value as it is shown, and its text, if it is one."""
    words = f"one of {', '.join(allowed)}" if len(allowed) > 1 else "".join(allowed)
    hint = did_you_mean(text, allowed) if text is not None else None
    return LD123.problem(f"{subject} must be {words}, not {shown}", hint)


LD124 = Code(
    "LD124",
    "Out of range",
    "error",
    "The number is too small or too large, or the text or list too short or too long.",
    "write a value in the range",
    wrong="max_steps: 0",
    right="max_steps: 5",
)


def out_of_range(subject: str, relation: str, limit: float, value: str) -> Problem:
    """A number, and the limit that it is to be, for example, at least."""
    return LD124.problem(f"{subject} must be {relation} {limit:g}, not {value}")


def empty_value(subject: str) -> Problem:
    """A text or list without content."""
    return LD124.problem(f"{subject} must not be empty", "write at least one, or leave the key out")


def several_keys(subject: str) -> Problem:
    """An item of a list that has more than one key."""
    return LD124.problem(f"{subject} must have one key only", "write each in an item of its own")


def empty_or_nul(subject: str) -> Problem:
    """A path that isn't one."""
    return LD124.problem(f"{subject} is empty or holds a NUL character", "write a path")


LD125 = Code(
    "LD125",
    "Malformed name",
    "error",
    "A name becomes a tool name, so it is a letter or _, then up to 63 letters, digits, _ and -.",
    "a name is a letter or _, then up to 63 letters, digits, _ and -",
    wrong="name: fact checker",
    right="name: fact_checker",
)


def malformed_name(subject: str, suggestion: str | None) -> Problem:
    """A name, and one like it that can be used."""
    hint = f"{LD125.fix}; such as `{suggestion}`" if suggestion else None
    return LD125.problem(f"{subject} is not a name", hint)


def malformed_prefix(subject: str) -> Problem:
    """A prefix of tools' names."""
    return LD125.problem(f"{subject} can't be part of a tool's name", "letters, digits, _ and - only, 63 at most")


LD126 = Code(
    "LD126",
    "Malformed reference",
    "error",
    "A reference to Python code is path.py:name; a class may also be module.Class.",
    "write `path.py:name`",
    wrong='"entry": {"function": "main.py"}',
    right='"entry": {"function": "main.py:main"}',
)


def malformed_reference(subject: str, *, to_class: bool) -> Problem:
    """A reference to a class or a function."""
    what = "a class: `path.py:Class` or `module.Class`" if to_class else "`path.py:function`"
    return LD126.problem(f"{subject} doesn't refer to Python code", f"write {what}")


LD127 = Code(
    "LD127",
    "Not exactly one entry",
    "error",
    "The entry names exactly one of agent, function and flow.",
    'give it one of "agent", "function" and "flow"',
    wrong='"entry": {"agent": "main", "function": "main.py:main"}',
    right='"entry": {"agent": "main"}',
)


def empty_entry() -> Problem:
    """An entry without any of them."""
    return LD127.problem("`entry` names nothing to run")


def several_entries(keys: Sequence[str]) -> Problem:
    """An entry with more than one of them."""
    return LD127.problem(f"`entry` names both {' and '.join(f'`{key}`' for key in keys)}", "keep one of them")


LD128 = Code(
    "LD128",
    "Mutually exclusive keys",
    "error",
    "Two keys contradict each other, or one has no effect beside the other or without it.",
    "keep one of the two",
    wrong="name: main\nmodel: openai:gpt-5",
    right="name: main",
)


def exclusive_keys(later: str, earlier: str, hint: str) -> Problem:
    """Two keys, by the order in which they stand in the file; the hint names the one that fits."""
    return LD128.problem(f"`{later}` excludes `{earlier}`, and both are given", hint)


def idle_key(path: str, reason: str) -> Problem:
    """A key of an MCP server; validation of its options gives the reason."""
    return LD128.problem(f"`{path}` {reason}", "remove it")


def unfitting_key(path: str, reason: str) -> Problem:
    """A key of a toolset of type `http`; validation of its options gives the reason."""
    return LD128.problem(f"`{path}` {reason}", "correct one of the two")


def model_of_entry(kind: str) -> Problem:
    """`input_model_ref` in an entry that isn't a function."""
    message = f"`entry.input_model_ref` is for a function, and the entry is `{kind}`"
    return LD128.problem(message, "an agent declares its own `input_model_ref`")


LD129 = Code(
    "LD129",
    "No files",
    "error",
    "A manifest lists at least one file in agent_files or python_files.",
    'add `"agent_files": ["*.agent"]`',
    wrong='"entry": {"agent": "main"}}',
    right='"entry": {"agent": "main"}, "agent_files": ["*.agent"]}',
)


def no_files() -> Problem:
    """A manifest whose two lists are empty."""
    return LD129.problem("the manifest lists no files: `agent_files` and `python_files` are empty")


LD130 = Code(
    "LD130",
    "Not a JSON Schema",
    "error",
    "The agent's `output` has to be the JSON Schema of an object. Its references lead to `$defs`, and not in a circle.",
    "correct the schema",
    wrong="    good: {type: bolean}",
    right="    good: {type: boolean}",
)


def invalid_schema(path: str, reason: str) -> Problem:
    """A part of a schema that its metaschema refuses."""
    return LD130.problem(f"`{path}` is not valid in a JSON Schema: {reason}")


def outside_reference(path: str) -> Problem:
    """A `$ref` to another document."""
    message = f"`{path}` refers to something outside the schema"
    return LD130.problem(message, "move it into `$defs`, and refer to `#/$defs/NAME`")


def dangling_reference(path: str, reference: str) -> Problem:
    """A `$ref` to something that the schema doesn't have."""
    return LD130.problem(f"`{path}` refers to `{reference}`, which doesn't exist", "define it under `$defs`")


def indirect_reference(path: str, reference: str) -> Problem:
    """A `$ref` to something that isn't a definition."""
    message = f"`{path}` refers to `{reference}`, which isn't a definition directly under `$defs`"
    return LD130.problem(message, "move it into `$defs`, and refer to `#/$defs/NAME`")


def recursive_reference(path: str, names: str) -> Problem:
    """A `$ref` in a definition that leads back to it."""
    return LD130.problem(f"`{path}` is part of a circle: {names}", "write out as many levels as are needed")


def no_object(path: str) -> Problem:
    """The schema of an output that isn't an object."""
    message = f"`{path}` must be the schema of an object, with `type: object`"
    return LD130.problem(message, "make what it describes a property of one; leave `output` out for text")


LD131 = Code(
    "LD131",
    "Unsupported `auth_mode`",
    "error",
    "Logging in to a provider's subscription is not supported; only oauth_off is accepted.",
    "use an API key, and `oauth_off` or no `auth_mode`",
    wrong='"runtime": {"auth_mode": "oauth_required"}',
    right='"runtime": {"auth_mode": "oauth_off"}',
)


def unsupported_auth_mode() -> Problem:
    """Any other `auth_mode`."""
    return LD131.problem("logging in to a provider's subscription is not supported")


LD132 = Code(
    "LD132",
    "Unknown format version",
    "error",
    "This version of llm-do reads version 1 of the manifest.",
    "write 1, or use the llm-do that the file was written for",
    wrong='"version": 2',
    right='"version": 1',
)


def unknown_version(version: str) -> Problem:
    """Any other `version`."""
    return LD132.problem(f"the format version is {version}, and this version of llm-do reads version 1")


LD190 = Code(
    "LD190",
    "Value not supported by this version",
    "error",
    "This version of llm-do doesn't support values of this kind, such as another kind of store for threads, or "
    "the extra that they need isn't installed.",
    "write a value that this version supports",
    wrong='"threads": {"store": "mysql://db/threads"}',
    right='"threads": {"store": "sqlite"}',
)


def unsupported_store(store: str) -> Problem:
    """Any other `threads.store`."""
    message = f"`threads.store`: this version doesn't support stores of the kind `{store.partition('://')[0]}`"
    return LD190.problem(message, "write `sqlite`, `memory` or `postgresql://...`")


def missing_driver(message: str, command: str) -> Problem:
    """A `threads.store` in PostgreSQL without the extra that it needs, and the command that installs it."""
    return LD190.problem(f"`threads.store`: {message}", f"install it with `{command}`")
