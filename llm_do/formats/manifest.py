"""`project.json`: its model, and parsing one. The objects in it are models of `parts`.

The linker resolves its names and paths.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from llm_do.diagnostics.codes import shape as problems
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.parts.flows import FlowFile
from llm_do.formats.parts.limits import BoundsFile, RuntimeFile
from llm_do.formats.parts.permissions import ApprovalsFile, PermissionsFile, Sandbox
from llm_do.formats.parts.shared import CassetteOptions
from llm_do.formats.parts.threads import ThreadsFile
from llm_do.formats.syntax.json_nodes import parse_json
from llm_do.formats.syntax.source import KeyPath, Node, format_key_path
from llm_do.formats.toolset_config import ToolsetConfig, config_faults
from llm_do.formats.validation.fields import (
    ClassRef,
    FunctionRef,
    HooksFile,
    Models,
    ModelSettings,
    Name,
    Opt,
    Path,
    Strict,
    empty_dict,
    empty_list,
    model_setting_names,
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

__all__ = ["EntryFile", "ManifestFile", "parse_manifest"]


class EntryFile(Strict):
    """What runs first: exactly one of an agent, a function and a flow."""

    agent: Opt[Name] = Field(default=None, description="Name of the agent that runs first.")
    function: Opt[FunctionRef] = Field(default=None, description="The Python function that runs first.")
    flow: Opt[Name] = Field(default=None, description="Name of the flow that runs first.")
    args: Opt[dict[str, Any]] = Field(default=None, description="The default input.")
    input_model_ref: Opt[ClassRef] = Field(
        default=None, description="What a function takes: a subclass of `AgentArgs`."
    )


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
    sandbox: Sandbox = Field(
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
