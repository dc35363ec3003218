"""`project.json`: its models, and parsing one.

The linker resolves its names and paths.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from llm_do.diagnostics.codes import shape as problems
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.shared_parts import CassetteOptions, FlowFile, ThreadsFile
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.formats.syntax.source import KeyPath, Node, format_key_path
from llm_do.formats.toolset_config import ToolsetConfig, config_faults
from llm_do.formats.validation.fields import (
    ClassRef,
    Effect,
    FunctionRef,
    Glob,
    HooksFile,
    Models,
    ModelSettings,
    Name,
    Opt,
    Path,
    Strict,
    Text,
    empty_dict,
    empty_list,
    model_setting_names,
    text_or_object,
)
from llm_do.formats.validation.regexes import unreadable_patterns
from llm_do.formats.validation.validator import (
    Parsed,
    find_misspelled_keys,
    parse_result,
    report_exclusive_keys,
    validate,
)
from llm_do.text.words import closest_match

__all__ = [
    "ApprovalsFile",
    "BoundsFile",
    "BudgetFile",
    "EntryFile",
    "ManifestFile",
    "OverridesFile",
    "PermissionsFile",
    "RecordFile",
    "RuleFile",
    "RuntimeFile",
    "SandboxFile",
    "SandboxMode",
    "parse_manifest",
]

_Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SandboxMode: TypeAlias = Literal["auto", "required", "off"]

_Count: TypeAlias = Annotated[int, Field(ge=0)]


class EntryFile(Strict):
    """What runs first: exactly one of an agent, a function and a flow."""

    agent: Opt[Name] = Field(default=None, description="Name of the agent that runs first.")
    function: Opt[FunctionRef] = Field(default=None, description="The Python function that runs first.")
    flow: Opt[Name] = Field(default=None, description="Name of the flow that runs first.")
    args: Opt[dict[str, Any]] = Field(default=None, description="The default input.")
    input_model_ref: Opt[ClassRef] = Field(
        default=None, description="What a function takes: a subclass of `AgentArgs`."
    )


class BudgetFile(Strict):
    """Limits of a run, nested and parallel calls included."""

    requests: Opt[_Count] = Field(default=None, description="Model requests.")
    tool_calls: Opt[_Count] = Field(default=None, description="Tool calls that run.")
    input_tokens: Opt[_Count] = Field(default=None, description="Tokens sent.")
    output_tokens: Opt[_Count] = Field(default=None, description="Tokens received.")
    total_tokens: Opt[_Count] = Field(default=None, description="Tokens sent and received.")
    cost_usd: Opt[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default=None, description="US dollars.")
    descendants: Opt[_Count] = Field(default=None, description="Nested calls.")


class OverridesFile(Strict):
    """The approval settings of calls to one agent; the project's where left out."""

    calls_require_approval: Opt[bool] = Field(default=None, description="Whether a call to this agent needs approval.")
    attachments_require_approval: Opt[bool] = Field(
        default=None, description="Whether attaching files to such a call needs approval."
    )


class RecordFile(Strict):
    """What recorded runs keep of the requests to models."""

    exchanges: bool = Field(default=True, description="Whether requests and responses are kept.")
    keep_days: int = Field(default=30, ge=1, description="Days after which they are dropped.")
    max_mb: int = Field(
        default=500, ge=1, description="Megabytes that they may take; those of the oldest runs are dropped first."
    )


class RuntimeFile(Strict):
    """Limits and modes."""

    approval_mode: Literal["prompt", "approve_all", "reject_all"] = Field(
        default="prompt", description="Who answers approval requests: a person, always yes, or always no."
    )
    max_depth: int = Field(default=5, ge=1, description="How deep calls may nest; the entry is at 1.")
    max_steps: int = Field(default=10, ge=1, description="Model requests in one agent run.")
    loop_threshold: int = Field(
        default=3, ge=0, description="Identical tool calls in a row that end a run; 0 turns it off."
    )
    max_retries: int = Field(default=3, ge=0, description="Retries of a model request after a transient failure.")
    on_tool_error: Literal["return", "raise"] = Field(
        default="return", description="Give a tool's error to the model, or end the run with it."
    )
    tool_timeout: Opt[_Seconds] = Field(default=None, description="Seconds a tool call may take.")
    run_timeout: Opt[_Seconds] = Field(default=None, description="Seconds a run may take.")
    max_concurrency: int = Field(default=50, ge=1, description="Model requests in flight.")
    max_calls_per_response: int = Field(
        default=128, ge=1, description="Tool calls of one model response that run; the rest are refused."
    )
    max_result_bytes: int = Field(
        default=65_536, ge=1, description="Bytes of a tool's result that are sent to the model."
    )
    record: RecordFile = Field(
        default_factory=RecordFile.model_construct, description="What recorded runs keep of the requests to models."
    )
    # Only 0.3's projects have it: see llm_do.compat.
    auth_mode: Text = Field(default="oauth_off", description="Accepted for older projects; only `oauth_off`.")
    budget: BudgetFile = Field(default_factory=BudgetFile.model_construct, description="Limits of a run.")
    return_permission_errors: bool = Field(
        default=True, description="Report a denial to the model; false ends the run."
    )
    agent_calls_require_approval: bool = Field(
        default=False, description="Whether calling an agent or a flow, or handing over, needs approval."
    )
    agent_attachments_require_approval: bool = Field(
        default=False, description="Whether attaching files to a call of an agent needs approval."
    )
    agent_approval_overrides: dict[Name, OverridesFile] = Field(
        default_factory=empty_dict, description="Approval settings of single agents, by name."
    )


class RuleFile(Strict):
    """A rule with its own test cases."""

    rule: Text = Field(description="The pattern: `tool`, `tool(PATTERN)` or `tool(name=PATTERN)`.")
    why: Opt[str] = Field(default=None, description="Why the rule is there, for people.")
    allows: list[Text] = Field(default_factory=empty_list, description="Calls that the pattern must match.")
    refuses: list[Text] = Field(default_factory=empty_list, description="Calls that it must not match.")


_Rule: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[RuleFile, Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be a pattern, or an object with a `rule`",
    ),
]


class ApprovalsFile(Strict):
    """Rules for what a model may do without approval, with approval, or not at all."""

    default: Opt[Effect] = Field(
        default=None, description="The decision where no rule and no tool makes one; by kind of tool if left out."
    )
    deny: list[_Rule] = Field(
        default_factory=empty_list, description="Calls that are denied, whatever other rules allow."
    )
    ask: list[_Rule] = Field(default_factory=empty_list, description="Calls that need approval.")
    allow: list[_Rule] = Field(default_factory=empty_list, description="Calls that run without approval.")
    policy: Opt[FunctionRef] = Field(
        default=None, description="A Python function that decides about every call, within the rules."
    )


class PermissionsFile(Strict):
    """What must hold of the project's permissions, whatever its agents and rules say."""

    assertions: list[Text] = Field(
        default_factory=empty_list,
        alias="assert",
        description="Sentences that are proved whenever the project is linked, such as `never web -> shell` or "
        "`deploy only after tests_passed`.",
    )


class BoundsFile(Strict):
    """The most that a run may take in the worst case, as `llm-do check --bounds` computes it."""

    requests: Opt[_Count] = Field(default=None, description="Model requests, retries included.")
    tool_calls: Opt[_Count] = Field(default=None, description="Tool calls that run.")
    cost_usd: Opt[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default=None, description="US dollars.")


class SandboxFile(Strict):
    """How commands that run without approval are confined."""

    mode: SandboxMode = Field(
        default="auto",
        description="Confine them where the machine can (`auto`), let none run without approval where it can't "
        "(`required`), or confine none (`off`).",
    )
    writable: list[Path] = Field(
        default_factory=empty_list,
        description="Folders outside the project that they may write to; `.git`, apart from its hooks and settings.",
    )
    readable: list[Glob] = Field(
        default_factory=empty_list,
        description="Globs of files that may hold secrets and that they may read anyway; `~/.kube` works too.",
    )


_Sandbox: TypeAlias = Annotated[
    Annotated[SandboxMode, Tag("<text>")] | Annotated[SandboxFile, Tag("<object>")],
    Discriminator(
        text_or_object,
        custom_error_type="text_or_object",
        custom_error_message="must be `auto`, `required`, `off`, or an object with a `mode`",
    ),
]


class ManifestFile(Strict):
    """An llm-do project."""

    model_config = ConfigDict(populate_by_name=False, title="llm-do project")

    schema_: Opt[str] = Field(default=None, alias="$schema", description="Ignored; lets an editor complete the file.")
    version: int = Field(description="Version of the format: 1.", json_schema_extra={"const": 1})
    name: Opt[str] = Field(default=None, description="The project's name, for people.")
    description: Opt[str] = Field(default=None, description="What the project does, for people.")
    entry: Opt[EntryFile] = Field(default=None, description="What runs first.")
    allow_cli_input: bool = Field(default=True, description="Whether the command line may give input.")
    agent_files: list[Path] = Field(
        default_factory=empty_list, description="Paths or globs of .agent files, relative to the manifest."
    )
    python_files: list[Path] = Field(
        default_factory=empty_list, description="Paths or globs of Python files, relative to the manifest."
    )
    skills: list[Path] = Field(
        default_factory=empty_list,
        description="Folders of skills, paths or globs relative to the manifest, for agents that list none themselves.",
    )
    data_folders: list[Path] = Field(
        default_factory=empty_list,
        description="Folders whose Python files are data: nothing in them is imported, so tools may write them.",
    )
    model: Opt[Models] = Field(default=None, description="The default model, or models that are tried in order.")
    models: dict[Name, Models] = Field(
        default_factory=empty_dict,
        description="Aliases: names for models, or for lists of them, that may be written wherever a model is named.",
    )
    model_settings: ModelSettings = Field(
        default_factory=ModelSettings, description="Default settings; an agent's own take precedence."
    )
    runtime: RuntimeFile = Field(default_factory=RuntimeFile.model_construct, description="Limits and modes.")
    approvals: ApprovalsFile = Field(default_factory=ApprovalsFile.model_construct, description="Rules for tool calls.")
    permissions: PermissionsFile = Field(
        default_factory=PermissionsFile.model_construct, description="What must hold of the project's permissions."
    )
    bounds: BoundsFile = Field(
        default_factory=BoundsFile.model_construct, description="The most that a run may take in the worst case."
    )
    toolsets: dict[Name, ToolsetConfig] = Field(default_factory=empty_dict, description="Configured toolsets, by name.")
    sandbox: _Sandbox = Field(
        default="auto", description="How commands that run without approval are confined: a mode, or an object."
    )
    flows: dict[Name, FlowFile] = Field(default_factory=empty_dict, description="Flows, by name.")
    hooks: HooksFile = Field(
        default_factory=HooksFile.model_construct, description="Functions for each hook point, for every agent."
    )
    context_providers: list[FunctionRef] = Field(
        default_factory=empty_list, description="Functions whose text is added to instructions at run time."
    )
    record: bool = Field(default=True, description="Whether prompts and results are kept on disk.")
    cassette: CassetteOptions = Field(
        default_factory=CassetteOptions.model_construct,
        description="What recordings of runs contain in addition to requests.",
    )
    threads: Opt[ThreadsFile] = Field(default=None, description="Where threads are kept, and their defaults.")
    generated_agents_dir: Path | None = Field(
        default=None, description="Folder in which `agent_create` writes agents; without it none can be created."
    )


def parse_manifest(text: str, file: str) -> Parsed[ManifestFile]:
    """Read a manifest.

    Args:
        text: The text of a `project.json`.
        file: How diagnostics name it.

    Returns:
        The manifest, its nodes, and every problem found in it.

    Example:
        >>> text = '{"version": 1, "entry": {"agent": "main"}, "agent_files": ["main.agent"], "modle": "x"}'
        >>> parse_result = parse_manifest(text, "project.json")
        >>> parse_result.value.entry.agent
        'main'
        >>> print(parse_result.diagnostics[0].message, "|", parse_result.diagnostics[0].hint)
        unknown key `modle` | did you mean `model`?
    """
    result = parse_json(text, file)
    value, found = validate(ManifestFile, result, salvage={"version": 1})
    if result.node is not None and result.node.kind == "mapping":
        found += _rules(result.node)
    return parse_result(value, result.node, found)


def _rules(node: Node) -> list[Diagnostic]:
    """Check what the model of the manifest can't express."""
    version = node.entries.get("version")
    found: list[Diagnostic] = []
    if version is not None and type(version.scalar) is int and version.scalar != 1:
        found.append(problems.unknown_version(version.text[:40]).at(version.place))
    mode = node.at(("runtime", "auth_mode"))
    if mode is not None and isinstance(mode.scalar, str) and mode.scalar not in ("", "oauth_off"):
        found.append(problems.unsupported_auth_mode().at(mode.place))
    found += _entry_rules(node)
    found += _file_rules(node)
    found += unreadable_patterns(node, ("cassette", "ignore"))
    found += find_misspelled_keys(node, ("model_settings",), model_setting_names())
    for name, config in node.entries["toolsets"].entries.items() if "toolsets" in node.entries else ():
        found += _toolset_rules(node, ("toolsets", name), config)
    return found


def _entry_rules(node: Node) -> list[Diagnostic]:
    entry = node.entries.get("entry")
    if entry is None:
        return [problems.missing_entry().at(node.source.place(node.start, node.start + 1))]
    if entry.kind != "mapping":
        return []
    kinds = [kind for kind in entry.entries if kind in ("agent", "function", "flow")]
    found: list[Diagnostic] = []
    if not kinds:
        near = any(closest_match(key, ("agent", "function", "flow")) for key in entry.entries)
        if not near:
            found.append(problems.empty_entry().at(node.key_place(("entry",))))
    if len(kinds) > 1:
        found.append(problems.several_entries(kinds).at(node.key_place(("entry", kinds[1]))))
    if "input_model_ref" in entry.entries and kinds and "function" not in kinds:
        found.append(problems.model_of_entry(kinds[0]).at(node.key_place(("entry", "input_model_ref"))))
    return found


def _file_rules(node: Node) -> list[Diagnostic]:
    lists = [node.entries[key] for key in ("agent_files", "python_files") if key in node.entries]
    if any(files.kind != "sequence" or files.items for files in lists):
        return []
    if any(
        closest_match(key, ("agent_files", "python_files"), spelling_only=True)
        for key in node.entries
        if key not in _KEYS
    ):
        return []
    place = lists[0].place if lists else node.source.place(node.start, node.start + 1)
    return [problems.no_files().at(place)]


def _toolset_rules(root: Node, loc: KeyPath, config: Node) -> list[Diagnostic]:
    kind = config.entries.get("type")
    if kind is None:
        return []
    both: list[Diagnostic] = []
    if kind.scalar == "mcp" and "command" not in config.entries and "url" not in config.entries:
        return [problems.missing_server_address(str(loc[-1])).at(root.key_place(loc))]
    if kind.scalar == "mcp":
        both = report_exclusive_keys(root, "command", "url", "a server has one of them", loc)
    faults = () if both else config_faults({key: inner.data() for key, inner in config.entries.items()}).items()
    for key, why in faults:
        path = format_key_path((*loc, key))
        problem = problems.idle_key(path, why) if kind.scalar == "mcp" else problems.unfitting_key(path, why)
        both.append(problem.at(config.key_place((key,))))
    return both


_KEYS = frozenset(info.alias or name for name, info in ManifestFile.model_fields.items())
