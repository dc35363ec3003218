"""`.agent` files: the model of their frontmatter, and parsing one.

The linker resolves the names in them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import ConfigDict, Discriminator, Field, Tag

from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.parts.shared import CompactionFile, StateGate
from llm_do.formats.syntax.frontmatter import split_frontmatter
from llm_do.formats.syntax.hidden_characters import find_hidden_characters
from llm_do.formats.syntax.source import AmbiguousScalar, KeyPath, Node, Source
from llm_do.formats.syntax.yaml_nodes import parse_yaml
from llm_do.formats.toolset_types.toolset_use import ToolsetList, ToolsetUse
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
    Text,
    empty_dict,
    empty_list,
    model_setting_names,
    text_or_object,
)
from llm_do.formats.validation.output_schema import check_output
from llm_do.formats.validation.validator import (
    Parsed,
    find_misspelled_keys,
    parse_result,
    report_exclusive_keys,
    validate,
)

__all__ = [
    "AgentFile",
    "CodeExecution",
    "ImageGeneration",
    "NamedCapability",
    "UserLocation",
    "WebFetch",
    "WebSearch",
    "parse_agent",
    "readable_name",
]


class UserLocation(Strict):
    """Where the searching person is."""

    city: Opt[Text] = Field(default=None, description="The city.")
    country: Opt[Text] = Field(default=None, description="The country, as a two-letter code.")
    region: Opt[Text] = Field(default=None, description="The region or state.")
    timezone: Opt[Text] = Field(default=None, description="The time zone, such as Europe/Paris.")


class WebSearch(Strict):
    """The provider searches the web."""

    tool_type: Literal["web_search"] = Field(description="The provider searches the web.")
    max_uses: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Maximum number of searches in one request."
    )
    allowed_domains: Opt[list[Text]] = Field(default=None, description="Search only these domains.")
    blocked_domains: Opt[list[Text]] = Field(default=None, description="Don't search these domains.")
    search_context_size: Opt[Literal["low", "medium", "high"]] = Field(default=None, description="How much is read.")
    user_location: Opt[UserLocation] = Field(default=None, description="Where the searching person is.")


class WebFetch(Strict):
    """The provider reads web pages."""

    tool_type: Literal["web_fetch"] = Field(description="The provider reads web pages.")
    max_uses: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Maximum number of pages in one request."
    )
    allowed_domains: Opt[list[Text]] = Field(default=None, description="Read only from these domains.")
    blocked_domains: Opt[list[Text]] = Field(default=None, description="Don't read from these domains.")


class CodeExecution(Strict):
    """The provider runs code in its sandbox."""

    tool_type: Literal["code_execution"] = Field(description="The provider runs code in its sandbox.")


class ImageGeneration(Strict):
    """The provider makes images."""

    tool_type: Literal["image_generation"] = Field(description="The provider makes images.")
    size: Opt[Text] = Field(default=None, description="The size, such as 1024x1024.")
    aspect_ratio: Opt[Text] = Field(default=None, description="The aspect ratio, such as 16:9.")
    output_format: Opt[Literal["png", "webp", "jpeg"]] = Field(default=None, description="The file format.")
    output_compression: Opt[Annotated[int, Field(ge=0, le=100)]] = Field(
        default=None, description="Compression, in percent."
    )


class NamedCapability(Strict):
    """A capability and its arguments, in the longest of PydanticAI's forms."""

    name: Text = Field(description="The capability's name.")
    arguments: Any = Field(description="Its arguments by name, or a list of one argument, or null.")


def _capability_form(value: object) -> str | None:
    keys = {*cast("dict[str, object]", value)} if isinstance(value, dict) else None
    return "<long>" if keys == {"name", "arguments"} else text_or_object(cast("object", value))


CapabilityUse: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[dict[Text, Any], Field(min_length=1, max_length=1), Tag("<object>")]
    | Annotated[NamedCapability, Tag("<long>")],
    Discriminator(
        _capability_form,
        custom_error_type="text_or_object",
        custom_error_message="must be a name, or one name with its arguments",
    ),
]
"""A capability in one of PydanticAI's forms: `Name`, `Name: argument`, `Name: {argument: value}`, or the long one."""

ServerSideToolFile: TypeAlias = Annotated[
    WebSearch | WebFetch | CodeExecution | ImageGeneration, Discriminator("tool_type")
]


class AgentFile(Strict):
    """The frontmatter of an llm-do agent."""

    model_config = ConfigDict(title="llm-do agent")

    name: Name = Field(description="The agent's name; it becomes a tool name.")
    description: Opt[str] = Field(default=None, description="Shown to models when the agent is a tool.")
    model: Opt[Models] = Field(default=None, description="Pins the model, or a list of models to try in order.")
    compatible_models: Opt[Annotated[list[Text], Field(min_length=1)]] = Field(
        default=None, description="Globs, one of which must match the model's name."
    )
    model_settings: ModelSettings = Field(default_factory=ModelSettings, description="Settings sent to the model.")
    input_model_ref: Opt[ClassRef] = Field(
        default=None, description="The input type, a subclass of `AgentArgs`; text and attachments by default."
    )
    output: Opt[dict[str, Any]] = Field(default=None, description="JSON Schema of its output; text by default.")
    output_model_ref: Opt[ClassRef] = Field(
        default=None, description="The output type, a pydantic model or a dataclass."
    )
    tools: list[Text] = Field(default_factory=empty_list, description="Names of functions that Python files export.")
    toolsets: ToolsetList = Field(
        default_factory=empty_list,
        description="Toolsets, toolkits, MCP servers, agents and flows, by name; with options where needed.",
    )
    skills: Opt[list[Path]] = Field(
        default=None,
        description="Folders of skills, paths or globs relative to the project's folder; the project's by default.",
    )
    handoffs: list[Name] = Field(default_factory=empty_list, description="Agents it may hand control to.")
    server_side_tools: list[ServerSideToolFile] = Field(
        default_factory=empty_list, description="Tools that the provider runs."
    )
    capabilities: list[CapabilityUse] = Field(
        default_factory=empty_list,
        description="Capabilities of PydanticAI, or those that Python files register, by name; with arguments if any.",
    )
    states: dict[Text, StateGate] = Field(
        default_factory=empty_dict, description="The states that each tool needs and changes."
    )
    gate: Opt[Literal["hide", "refuse"]] = Field(
        default=None,
        description="Whether tools that aren't available are hidden from the model (default), or shown and refused.",
    )
    compaction: Opt[CompactionFile] = Field(default=None, description="How a long history is shortened.")
    context_providers: list[FunctionRef] = Field(
        default_factory=empty_list, description="Functions whose text is added to the instructions at run time."
    )
    input_guards: list[FunctionRef] = Field(
        default_factory=empty_list, description="Functions that check, replace or refuse what the agent gets."
    )
    output_guards: list[FunctionRef] = Field(
        default_factory=empty_list, description="Functions that check, replace or refuse what the agent returns."
    )
    template: bool = Field(
        default=False, description="Whether the instructions are a template over the input's fields."
    )
    max_steps: Opt[Annotated[int, Field(ge=1)]] = Field(
        default=None, description="Model requests in one run; the project's by default."
    )
    retries: Opt[Annotated[int, Field(ge=0)]] = Field(
        default=None, description="Retries after invalid output; 1 by default."
    )
    tool_timeout: Opt[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default=None, description="Seconds a tool call may take; the project's by default."
    )
    loop_threshold: Opt[Annotated[int, Field(ge=0)]] = Field(
        default=None,
        description="Identical tool calls in a row that end a run; 0 turns it off. The project's by default.",
    )
    hooks: HooksFile = Field(
        default_factory=lambda: _NO_HOOKS, description="Functions for each hook point of this agent."
    )

    def toolset_uses(self) -> list[tuple[str, ToolsetUse, KeyPath]]:
        """The toolsets in declared order: name, how it is used, and the path in the node tree to the name."""
        if isinstance(self.toolsets, dict):
            return [(name, use, ("toolsets", name)) for name, use in self.toolsets.items()]
        uses: list[tuple[str, ToolsetUse, KeyPath]] = []
        for index, item in enumerate(self.toolsets):
            if isinstance(item, str):
                uses.append((item, _PLAIN_USE, ("toolsets", index)))
            else:
                uses.extend((name, use, ("toolsets", index, name)) for name, use in item.items())
        return uses


_PLAIN_USE = ToolsetUse.model_construct()
_NO_HOOKS = HooksFile.model_construct()


def parse_agent(text: str, file: str) -> Parsed[AgentFile]:
    """Read an `.agent` file.

    Args:
        text: Its text.
        file: How diagnostics name it.

    Returns:
        The declaration, the frontmatter's nodes, every problem found in it, and the body.

    Example:
        >>> parse_result = parse_agent("---\\nname: greeter\\n---\\n\\nGreet the person.\\n", "greeter.agent")
        >>> parse_result.value.name, parse_result.body
        ('greeter', 'Greet the person.')
    """
    source = Source(file, text.removeprefix("\ufeff"))
    parts = split_frontmatter(source)
    if isinstance(parts, Diagnostic):
        return Parsed(None, None, (parts,))
    result = parse_yaml(source, parts.start, parts.end)
    value, found = validate(AgentFile, result)
    node = result.node
    if node is not None and node.kind == "mapping":
        found += _rules(node)
    if result.node is not None:
        found += find_hidden_characters(source)
    if not found:
        return Parsed(value, node, (), parts.body, parts.body_start)
    return parse_result(value, node, found, parts.body, parts.body_start)


def _rules(node: Node) -> list[Diagnostic]:
    """Check what the model of the frontmatter can't express."""
    keys = node.entries
    found: list[Diagnostic] = []
    if "model" in keys and "compatible_models" in keys:
        found += report_exclusive_keys(node, "model", "compatible_models", "pin a model, or list the compatible ones")
    if "output" in keys:
        found += report_exclusive_keys(node, "output", "output_model_ref", "keep one of the two")
        found += check_output(node, ("output",))
    if "compaction" in keys:
        found += report_exclusive_keys(node, "max_tokens", "fraction", "keep one of the two", ("compaction",))
    if "model_settings" in keys:
        found += find_misspelled_keys(node, ("model_settings",), model_setting_names())
    if "toolsets" in keys:
        toolsets = keys["toolsets"]
        found += _use_rules(node, ("toolsets",), toolsets)
        for index, item in enumerate(toolsets.items):
            found += _use_rules(node, ("toolsets", index), item)
    return found


def _use_rules(node: Node, loc: KeyPath, uses: Node) -> list[Diagnostic]:
    return [
        found
        for name in uses.entries
        for found in find_misspelled_keys(node, (*loc, name), ("prefix", "include", "exclude"))
    ]


_NAME_LINE = r"""(?m)^name:[ \t]+(["']?)([A-Za-z_][A-Za-z0-9_-]{0,63})\1[ \t]*(?:#.*)?$"""


def readable_name(node: Node | None, text: str = "") -> str | None:
    """Find an agent's name though the rest of its file failed to parse.

    Args:
        node: The frontmatter's tree, None when it is not YAML.
        text: The file's text, used when there is no tree.

    Returns:
        The name as written, None when it can't be read.

    Example:
        >>> readable_name(None, "---\\nname: writer\\ndescription: a: b\\n---\\n")
        'writer'
    """
    if node is None:
        found = re.search(_NAME_LINE, text.replace("\r\n", "\n").replace("\r", "\n"))
        return found[2] if found is not None else None
    name = node.entries.get("name")
    if name is None or name.kind != "scalar":
        return None
    return (
        name.scalar.text
        if isinstance(name.scalar, AmbiguousScalar)
        else name.scalar
        if isinstance(name.scalar, str)
        else None
    )
