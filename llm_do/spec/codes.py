"""The table of every diagnostic code, and the one way to make a `Diagnostic`.

A code is stable: it is never given to another fault. Blocks: LD1xx reading, syntax and shape of files; LD2xx names
and references; LD3xx Python files; LD4xx agents' tools and toolsets; LD5xx flows; LD6xx approval rules; LD7xx models
and environment; LD8xx unused things. A new code is a new row; its page in the documentation is written from the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm_do.spec.diagnostics import Diagnostic, Place, Severity
from llm_do.spec.visible import visible

__all__ = ["CODES", "Code", "diagnostic"]


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Args:
        title: A few words.
        severity: Of every diagnostic with this code.
        explanation: What is wrong and why it matters, for the documentation.
        wrong: An example that has the fault.
        fixed: The same without it.
    """

    title: str
    severity: Severity
    explanation: str
    wrong: str
    fixed: str


def diagnostic(code: str, message: str, place: Place, hint: str | None = None) -> Diagnostic:
    """Make a diagnostic; its severity comes from the table, and what a file put into its words is made visible.

    Args:
        code: A code of the table.
        message: What is wrong and why, one sentence without a full stop.
        place: Where.
        hint: What to do about it.

    Returns:
        The diagnostic.

    Raises:
        KeyError: The code is not in the table.

    Example:
        >>> str(diagnostic("LD120", "unknown key `modle`", Place("a.agent", 3)).severity)
        'error'
    """
    return Diagnostic(code, CODES[code].severity, visible(message), place, hint if hint is None else visible(hint))


CODES: dict[str, Code] = {
    "LD101": Code(
        "File can't be read",
        "error",
        "The file is missing, is a folder or a device, or may not be read.",
        '"agent_files": ["gone.agent"]',
        '"agent_files": ["main.agent"]',
    ),
    "LD102": Code(
        "Not UTF-8",
        "error",
        "Files of a project are UTF-8, with or without a byte-order mark, whatever the machine's locale.",
        "a file saved as Latin-1 or UTF-16",
        "the same file saved as UTF-8",
    ),
    "LD103": Code(
        "Character not allowed",
        "error",
        "Control characters and lone surrogates can't stand in frontmatter or a manifest.",
        "name: main<U+0007>",
        "name: main",
    ),
    "LD104": Code(
        "Too large",
        "error",
        "A file is too long, or nests lists and mappings too deeply, to be a description of a project.",
        "[[[[[[ ... a hundred deep ... ]]]]]]",
        "[1, 2, 3]",
    ),
    "LD105": Code(
        "JSON syntax",
        "error",
        "The manifest is not JSON. Comments, trailing commas and single quotes are not part of JSON.",
        '{"version": 1, "entry": {"agent": "main"},}',
        '{"version": 1, "entry": {"agent": "main"}}',
    ),
    "LD106": Code(
        "YAML syntax",
        "error",
        "The frontmatter is not YAML. Most often a value with a colon in it needs quotes.",
        "description: Note: reads files",
        'description: "Note: reads files"',
    ),
    "LD107": Code(
        "No frontmatter",
        "error",
        "An .agent file starts with a line that is exactly ---, with nothing before it.",
        "name: main",
        "---\nname: main\n---",
    ),
    "LD108": Code(
        "Frontmatter not closed",
        "error",
        "The frontmatter ends with a line that is exactly ---: no blanks around it, no fourth dash.",
        "---\nname: main\n----\nYou are helpful.",
        "---\nname: main\n---\nYou are helpful.",
    ),
    "LD110": Code(
        "Duplicate key",
        "error",
        "The same key stands twice in one mapping, so one of the values would be lost.",
        "name: main\nname: other",
        "name: main",
    ),
    "LD111": Code(
        "YAML tag",
        "error",
        "Tags (!!str, !python/object) are not part of the format.",
        "name: !!str main",
        "name: main",
    ),
    "LD112": Code(
        "YAML merge key",
        "error",
        "A merge (<<) hides where keys come from, and is not part of the format.",
        "<<: *defaults",
        "max_steps: 5",
    ),
    "LD113": Code(
        "YAML alias",
        "error",
        "An alias refers to nothing or to what it is part of, or aliases multiply to too many values.",
        "tools: &a [*a]",
        "tools: [search]",
    ),
    "LD114": Code(
        "Key is not text",
        "error",
        "Keys are text; YAML reads this one as something else, or as a list or mapping.",
        "states: {on: {requires: [ready]}}",
        'states: {"on": {requires: [ready]}}',
    ),
    "LD115": Code(
        "Quote it",
        "error",
        "YAML reads this unquoted value as something other than text, or its versions disagree about it.",
        "name: no",
        'name: "no"',
    ),
    "LD116": Code(
        "Not a number of JSON",
        "error",
        "NaN, Infinity and numbers too large to be held are not data that can be sent to a model.",
        '"model_settings": {"temperature": NaN}',
        '"model_settings": {"temperature": 0.5}',
    ),
    "LD120": Code(
        "Unknown key",
        "error",
        "The key is not part of the format; most often it is misspelled.",
        "modle: openai:gpt-5-mini",
        "model: openai:gpt-5-mini",
    ),
    "LD121": Code(
        "Missing key",
        "error",
        "A key that must be there isn't.",
        "---\ndescription: Greets.\n---",
        "---\nname: greeter\ndescription: Greets.\n---",
    ),
    "LD122": Code(
        "Wrong type",
        "error",
        "The value is of another type than the key takes. Nothing is converted silently.",
        '"version": "1"',
        '"version": 1',
    ),
    "LD123": Code(
        "Not one of the values",
        "error",
        "The key takes one of a few values, and this isn't one.",
        '"approval_mode": "approve-all"',
        '"approval_mode": "approve_all"',
    ),
    "LD124": Code(
        "Out of range",
        "error",
        "The number is too small or too large, or the text or list too short or too long.",
        "max_steps: 0",
        "max_steps: 5",
    ),
    "LD125": Code(
        "Malformed name",
        "error",
        "A name becomes a tool name, so it is a letter or _, then up to 63 letters, digits, _ and -.",
        "name: fact checker",
        "name: fact_checker",
    ),
    "LD126": Code(
        "Malformed reference",
        "error",
        "A reference to Python code is path.py:name; a class may also be module.Class.",
        '"function": "main.py"',
        '"function": "main.py:main"',
    ),
    "LD127": Code(
        "Not exactly one entry",
        "error",
        "The entry names exactly one of agent, function and flow.",
        '"entry": {"agent": "main", "function": "main.py:main"}',
        '"entry": {"agent": "main"}',
    ),
    "LD128": Code(
        "Keys exclude each other",
        "error",
        "Two keys say different things about the same.",
        "model: openai:gpt-5\ncompatible_models: ['openai:*']",
        "compatible_models: ['openai:*']",
    ),
    "LD129": Code(
        "No files",
        "error",
        "A manifest lists at least one file in agent_files or python_files.",
        '{"version": 1, "entry": {"agent": "main"}}',
        '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}',
    ),
    "LD130": Code(
        "Not a JSON Schema",
        "error",
        "The agent's `output` has to be a valid JSON Schema whose references stay inside it.",
        "output: {type: objekt}",
        "output: {type: object}",
    ),
    "LD131": Code(
        "auth_mode",
        "error",
        "Logging in to a provider's subscription is not supported; only oauth_off is accepted.",
        '"auth_mode": "oauth_required"',
        '"auth_mode": "oauth_off"',
    ),
    "LD132": Code(
        "Unknown format version",
        "error",
        "This version of llm-do reads version 1 of the manifest.",
        '"version": 2',
        '"version": 1',
    ),
    "LD190": Code(
        "Not in this version",
        "error",
        "The key is part of the format, but this version of llm-do doesn't act on it yet.",
        '"flows": {"article": {"mode": "workflow", "flow": "a >> b"}}',
        "the same project without the key",
    ),
    "LD201": Code(
        "Unknown name",
        "error",
        "Nothing in the project has this name: no agent, exported tool, toolset or flow, and no built-in.",
        "tools: [serach]",
        "tools: [search]",
    ),
    "LD202": Code(
        "Name taken twice",
        "error",
        "Agents, tools, toolsets and flows share one namespace, so that a call by name is unambiguous.",
        "search.agent has name: search, and tools.py exports a function search",
        "search.agent has name: searcher",
    ),
    "LD203": Code(
        "Reserved name",
        "error",
        "The name belongs to a built-in toolset, which every agent can list.",
        "name: filesystem_cwd",
        "name: files",
    ),
    "LD204": Code(
        "Wrong kind of name",
        "error",
        "The name exists, but what it stands for can't be used here.",
        "tools: [reviewer]",
        "toolsets: [reviewer]",
    ),
    "LD205": Code(
        "No entry",
        "error",
        "Without a manifest the entry is the agent named main, else the only agent; here it is neither.",
        "a folder with a.agent and b.agent",
        "the same folder with a main.agent, or with a project.json that names the entry",
    ),
    "LD206": Code(
        "Nothing matches",
        "error",
        "A listed path or pattern names no file, so something the project counts on is missing.",
        '"agent_files": ["agent/*.agent"]',
        '"agent_files": ["agents/*.agent"]',
    ),
    "LD207": Code(
        "Path leaves the project",
        "error",
        "Paths in a manifest are relative to its folder and stay in it, symbolic links included.",
        '"python_files": ["../shared/tools.py"]',
        '"python_files": ["shared/tools.py"]',
    ),
    "LD208": Code(
        "Not an ordinary file",
        "error",
        "A listed path names a folder, a device or a pipe.",
        '"agent_files": ["agents"]',
        '"agent_files": ["agents/*.agent"]',
    ),
    "LD209": Code(
        "Name can't be used",
        "error",
        "A name becomes a tool name: a letter or _, then up to 63 letters, digits, _ and -.",
        'TOOLS = {"look up": look_up}',
        'TOOLS = {"look_up": look_up}',
    ),
    "LD210": Code(
        "Module isn't the project's",
        "error",
        "References lead into the listed Python files only, never to an installed module.",
        "input_model_ref: os.path",
        "input_model_ref: schemas.Pitch",
    ),
    "LD211": Code(
        "Nothing of that name in the file",
        "error",
        "The file was imported, and it has no such name.",
        '"function": "main.py:mian"',
        '"function": "main.py:main"',
    ),
    "LD212": Code(
        "Reference to something unsuitable",
        "error",
        "An input model is a subclass of AgentArgs, an output model a type that pydantic can validate, and an entry a "
        "function that takes (input, ctx).",
        "def main(): ...",
        "def main(input, ctx): ...",
    ),
    "LD213": Code(
        "Default input doesn't fit",
        "error",
        "The entry's `args` are used when no input is given, so they have to fit its input model.",
        '"args": {"imput": "hello"}',
        '"args": {"input": "hello"}',
    ),
    "LD214": Code(
        "Unknown template field",
        "error",
        "An agent with `template: true` names a field that its input doesn't have.",
        "Judge {{compnay}}.",
        "Judge {{company}}.",
    ),
    "LD301": Code(
        "Python syntax",
        "error",
        "The file is not valid Python.",
        "def add(a, b)",
        "def add(a, b):",
    ),
    "LD302": Code(
        "Import failed",
        "error",
        "The file raised while it was imported. The place is the project's own line nearest to the fault.",
        "import requets",
        "import requests",
    ),
    "LD303": Code(
        "Not a Python file",
        "error",
        "A file listed in python_files ends in .py.",
        '"python_files": ["tools.txt"]',
        '"python_files": ["tools.py"]',
    ),
    "LD304": Code(
        "Export of the wrong shape",
        "error",
        "TOOLS, TOOLSETS and AGENTS are dicts or lists, __all__ a list of names.",
        "TOOLS = add",
        "TOOLS = [add]",
    ),
    "LD305": Code(
        "Can't be exported",
        "error",
        "TOOLS holds functions and tool objects, TOOLSETS toolset instances and factories, AGENTS agent specs.",
        "TOOLSETS = [FileSystemToolset]",
        "TOOLSETS = [FileSystemToolset()]",
    ),
    "LD306": Code(
        "Export without a name",
        "error",
        "A member of a list is named by itself or by a module-level variable; this one has neither name.",
        "TOOLSETS = [FunctionToolset()]",
        'TOOLSETS = {"math": FunctionToolset()}',
    ),
    "LD307": Code(
        "Export that doesn't exist",
        "error",
        "__all__ names something that the file doesn't define.",
        '__all__ = ["ad"]',
        '__all__ = ["add"]',
    ),
    "LD308": Code(
        "Two names for one agent",
        "error",
        "An agent is called by its own name, so its key in AGENTS has to be the same.",
        'AGENTS = {"writer": AgentSpec("author")}',
        'AGENTS = {"author": AgentSpec("author")}',
    ),
    "LD310": Code(
        "Import doesn't end",
        "error",
        "The file was still being imported when the time for it was over. What takes long belongs into a function.",
        "client = connect()",
        "def client(): return connect()",
    ),
    "LD311": Code(
        "Import ended the process",
        "error",
        "The file ended the interpreter while it was imported, by a crash or on purpose.",
        "os._exit(1)",
        "def leave(): os._exit(1)",
    ),
    "LD401": Code(
        "Built-in not in this version",
        "error",
        "The name is reserved for a built-in that this version of llm-do doesn't have yet.",
        "toolsets: [todo]",
        "toolsets: [filesystem_project]",
    ),
    "LD402": Code(
        "Two tools of one name in an agent",
        "error",
        "The model sees tools by name, so the names of one agent's tools have to differ.",
        "tools: [search, search]",
        "tools: [search]",
    ),
    "LD403": Code(
        "Derived name can't be used",
        "error",
        "A prefix makes a tool's name too long, or puts a character in it that providers refuse.",
        'toolsets: [{reviewer: {prefix: "the reviewer"}}]',
        "toolsets: [{reviewer: {prefix: the}}]",
    ),
    "LD404": Code(
        "Option that isn't taken",
        "error",
        "Every toolset takes prefix, include and exclude; one that the manifest configures also what its type takes.",
        "toolsets: [{reviewer: {prefx: a}}]",
        "toolsets: [{reviewer: {prefix: a}}]",
    ),
    "LD405": Code(
        "Not a tool",
        "error",
        "No tool can be made of an exported function or object: a parameter's type has no JSON Schema, or the "
        "parameters that it declares are none.",
        "def send(to: socket.socket): ...",
        "def send(to: str): ...",
    ),
    "LD406": Code(
        "Refused by a provider",
        "warning",
        "A provider whose model the agent may use is known to refuse a request with this tool in it.",
        "def locate(point: tuple[float, str]): ...",
        "def locate(latitude: float, name: str): ...",
    ),
    "LD407": Code(
        "Too many tools",
        "warning",
        "The agent has more tools than a provider takes in one request.",
        "tools: [t1, t2, ... 129 of them]",
        "tools: [t1, t2, ... fewer]",
    ),
    "LD408": Code(
        "Choice that chooses nothing",
        "warning",
        "A glob of `include` or `exclude` matches no tool of the toolset; most often it is misspelled.",
        "toolsets: [{filesystem_project: {exclude: [writ_file]}}]",
        "toolsets: [{filesystem_project: {exclude: [write_file]}}]",
    ),
    "LD409": Code(
        "Primary argument that isn't there",
        "error",
        "Rules match a tool's primary argument, so it has to be one of its parameters.",
        '@tool(primary="adress")',
        '@tool(primary="address")',
    ),
    "LD410": Code(
        "State that nothing unlocks",
        "warning",
        "Tools need a state that no tool of their toolkit, or of the agent's `states`, enables; most often one of the two "
        "is misspelled. A run that continues from another one may have it unlocked already.",
        "states: {test: {enables: [testd]}, push: {requires: [tested]}}",
        "states: {test: {enables: [tested]}, push: {requires: [tested]}}",
    ),
    "LD411": Code(
        "Tool that never becomes available",
        "warning",
        "Whatever is called, the states that the tool requires are never unlocked together while those that it forbids "
        "are locked.",
        "states: {open: {enables: [ready, done]}, push: {requires: [ready], forbids: [done]}}",
        "states: {open: {enables: [ready]}, push: {requires: [ready], forbids: [done]}}",
    ),
    "LD412": Code(
        "Dead end",
        "warning",
        "Calls can lead to a situation in which no tool of the machine is available, so that the model can only answer.",
        "states: {close: {forbids: [closed], enables: [closed]}}",
        "states: {close: {forbids: [closed], enables: [closed]}, reopen: {requires: [closed], disables: [closed]}}",
    ),
    "LD413": Code(
        "Gate of an unknown tool",
        "error",
        "`states` speaks of a tool that the agent doesn't have, so that the tool that is meant would not be gated.",
        "states: {writ_file: {requires: [read]}}",
        "states: {write_file: {requires: [read]}}",
    ),
    "LD414": Code(
        "Toolkit that can't be used",
        "error",
        "A tool of the toolkit names a filter that doesn't exist, or no schema can be made of it.",
        'def pick(id: DynamicFiltered[("items", "activ_only")]): ...',
        'def pick(id: DynamicFiltered[("items", "active_only")]): ...',
    ),
    "LD601": Code(
        "Rule can't be read",
        "error",
        "A rule is `tool`, `tool(PATTERN)` or `tool(name=PATTERN, ...)`, with `agent:` in front when it is for one.",
        '"allow": ["shell(git log *"]',
        '"allow": ["shell(git log *)"]',
    ),
    "LD602": Code(
        "Rule disproved",
        "error",
        "An example that stands beside a rule comes out otherwise than it says.",
        '{"rule": "shell(git log *)", "allows": ["git -C / log"]}',
        '{"rule": "shell(git log *)", "refuses": ["git -C / log"]}',
    ),
    "LD603": Code(
        "Broad rule",
        "warning",
        "The rule allows more than a reader expects: every tool, every command, or a program that runs others.",
        '"allow": ["shell(*)"]',
        '"allow": ["shell(git log *)"]',
    ),
    "LD604": Code(
        "Rule that can't match",
        "warning",
        "No agent that the rule speaks of exists or has a tool that it speaks of, so it does nothing.",
        '"deny": ["writ_file"]',
        '"deny": ["write_file"]',
    ),
    "LD605": Code(
        "Rule about which argument",
        "error",
        "`tool(PATTERN)` speaks of a tool's primary argument, and this tool declares none.",
        '"allow": ["send(ann)"]',
        '"allow": ["send(to=ann)"]',
    ),
    "LD606": Code(
        "Rule about an unknown argument",
        "error",
        "The tool has no argument of the name that the rule speaks of, so the rule would never match.",
        '"deny": ["send(too=ann)"]',
        '"deny": ["send(to=ann)"]',
    ),
    "LD607": Code(
        "Right through another agent",
        "warning",
        "A rule keeps a tool from an agent, which has it without a question through an agent that it calls.",
        '"ask": ["main:write_file"], "allow": ["writer:write_file"]',
        '"ask": ["write_file"]',
    ),
    "LD501": Code(
        "Malformed flow expression",
        "error",
        "An expression is names joined by `>>` (then) and `|` (beside); where both meet, parentheses say which belongs "
        "together.",
        '"flow": "draft >> facts | style"',
        '"flow": "draft >> (facts | style)"',
    ),
    "LD502": Code(
        "Twice in a flow",
        "error",
        "A step's name tells it apart in paths, results and events, so that each stands in a flow once. To run an "
        "agent again, put it in a flow of its own.",
        '"flow": "writer >> critic >> writer"',
        '"flow": "writer >> critic >> rewrite", "rewrite": {"mode": "workflow", "agents": ["writer"]}',
    ),
    "LD503": Code(
        "Flow that runs itself",
        "error",
        "A step of the flow is the flow itself, directly or through others: it would never end.",
        '"a": {"mode": "workflow", "flow": "x >> b"}, "b": {"mode": "workflow", "flow": "y >> a"}',
        '"a": {"mode": "workflow", "flow": "x >> b"}, "b": {"mode": "workflow", "flow": "y >> z"}',
    ),
    "LD504": Code(
        "Flow without members",
        "error",
        "A workflow has an expression, a list of members, or both.",
        '"article": {"mode": "workflow"}',
        '"article": {"mode": "workflow", "flow": "researcher >> writer"}',
    ),
    "LD505": Code(
        "Member that nothing reaches",
        "warning",
        "A workflow lists it but its expression never names it, or it is in a handoff flow and no agent there hands "
        "over to it: it would never run.",
        '"flow": "researcher >> writer", "agents": ["researcher", "stylist", "writer"]',
        '"flow": "researcher >> stylist >> writer"',
    ),
    "LD506": Code(
        "Handover out of a flow",
        "error",
        "An agent in a handoff flow lists a target under `handoffs` that is not in the flow.",
        '"agents": ["triage"] and handoffs: [billing] in triage.agent',
        '"agents": ["triage", "billing"]',
    ),
    "LD507": Code(
        "Tool that clashes with a flow's",
        "error",
        "An agent has a tool named `delegate_to_NAME` or `transfer_to_NAME`, and its team or its `handoffs` give it "
        "one of that name.",
        "tools: [transfer_to_billing] and handoffs: [billing]",
        "handoffs: [billing]",
    ),
    "LD701": Code(
        "Malformed model name",
        "error",
        "A model is named provider:name, or by a single word such as test. Whether it exists shows when it is used.",
        "model: 'openai:'",
        "model: openai:gpt-5-mini",
    ),
    "LD702": Code(
        "Missing environment variable",
        "error",
        "A toolset's configuration refers to a variable that isn't set.",
        '"headers": {"Authorization": "Bearer ${KB_TOKN}"}',
        '"headers": {"Authorization": "Bearer ${KB_TOKEN}"}',
    ),
    "LD801": Code(
        "Unreachable agent",
        "warning",
        "Neither the entry nor an agent that it can reach lists the agent, and no Python file mentions it.",
        "an old.agent that no agent lists",
        "the project without it, or toolsets: [old] in an agent",
    ),
    "LD802": Code(
        "Unused Python file",
        "warning",
        "Nothing that the file exports is used, no reference leads to it and no other file imports it.",
        '"python_files": ["tools.py", "old_tools.py"]',
        '"python_files": ["tools.py"]',
    ),
    "LD803": Code(
        "Unused toolset",
        "warning",
        "The manifest configures a toolset that no agent lists.",
        '"toolsets": {"docs": {"type": "filesystem", "root": "docs"}} and no agent with toolsets: [docs]',
        "toolsets: [docs]",
    ),
}
"""Every code. The blocks LD2xx to LD8xx belong to the linker."""
