"""From parsed files to the values that the runtime reads: `AgentSpec`, `EntrySpec`, `RuntimeSettings`.

`llm_do.linker.checks.agent_checks` looks up the names in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.formats.syntax.source import KeyPath, Node, key_place_in, place_in
from llm_do.linker.python.references import References
from llm_do.project.agent_spec import AgentSpec, CapabilityRef, ServerSideTool, ToolsetRef
from llm_do.project.gates import Gate
from llm_do.project.project import Budget, Overrides, RecordSettings, RuntimeSettings
from llm_do.project.sandbox_spec import SandboxMode, SandboxSpec
from llm_do.project.thread_config import ThreadConfig, ThreadsSpec

if TYPE_CHECKING:
    from llm_do.formats.agent_file import AgentFile
    from llm_do.formats.parts.limits import RuntimeFile
    from llm_do.formats.parts.permissions import SandboxFile
    from llm_do.formats.parts.shared import StateGate
    from llm_do.formats.parts.threads import ThreadsFile
    from llm_do.formats.validation.fields import HooksFile

__all__ = [
    "HOOK_KEYWORDS",
    "AgentSource",
    "agent_spec",
    "hook_functions",
    "provider_functions",
    "runtime_settings",
    "sandbox_spec",
    "threads_spec",
]


@frozen
class AgentSource:
    """One `.agent` file after parsing.

    Args:
        path: The file, absolute.
        label: The file as diagnostics name it.
        value: What it declares, None when nothing is usable.
        node: Its frontmatter's nodes.
        body: The instructions.
        body_start: Offset of the body in the file's text, -1 without one.
        diagnostics: What is wrong with it.
        readable: Its name if that can be read, whatever is wrong with the rest.
    """

    path: Path
    label: str
    value: AgentFile | None
    node: Node | None
    body: str
    body_start: int
    diagnostics: Sequence[Diagnostic]
    readable: str | None = None

    def place(self, loc: KeyPath) -> Location:
        """The place of a value of the frontmatter."""
        return place_in(self.node, self.label, loc)

    def key_place(self, loc: KeyPath) -> Location:
        """The place of a key of the frontmatter."""
        return key_place_in(self.node, self.label, loc)

    @property
    def failed(self) -> bool:
        """Whether the file itself has an error."""
        return any(item.severity == "error" for item in self.diagnostics)

    @property
    def names(self) -> set[str]:
        """Its stem, and its name if that can be read."""
        return {self.path.stem} if self.readable is None else {self.path.stem, self.readable}


def agent_spec(source: AgentSource, value: AgentFile, references: References) -> AgentSpec:
    """Make an agent of its file."""
    input_model = output = None
    if value.input_model_ref is not None:
        input_model = references.input_model(value.input_model_ref, source.place(("input_model_ref",)))
    if value.output_model_ref is not None:
        output = references.output_model(value.output_model_ref, source.place(("output_model_ref",)))
    return AgentSpec(
        name=value.name,
        model=value.model if isinstance(value.model, str | None) else tuple(value.model),
        instructions=source.body,
        tools=tuple(value.tools),
        toolsets=_toolset_refs(source, value),
        skills=tuple(value.skills) if value.skills is not None else None,
        handoffs=tuple(value.handoffs),
        context_providers=provider_functions(
            value.context_providers, references, lambda index: source.place(("context_providers", index))
        ),
        input_guards=_guards(source, "input_guards", value.input_guards, references),
        output_guards=_guards(source, "output_guards", value.output_guards, references),
        hooks=hook_functions(value.hooks, references, lambda point, index: source.place(("hooks", point, index))),
        output_type=output or value.output or str,
        input_model=input_model,
        max_steps=value.max_steps,
        model_settings=dict(value.model_settings) if value.model_settings else None,
        retries=value.retries,
        description=value.description,
        compaction=value.compaction.model_dump(exclude_unset=True) if value.compaction is not None else None,
        compatible_models=tuple(value.compatible_models or ()),
        server_side_tools=_server_side_tools(source, value) if value.server_side_tools else (),
        capabilities=_capabilities(source, value) if value.capabilities else (),
        template=value.template,
        tool_timeout=value.tool_timeout,
        loop_threshold=value.loop_threshold,
        place=source.place(("name",)),
        states={name: _gate(each, source.key_place(("states", name))) for name, each in value.states.items()},
        gate=value.gate,
    )


def _guards(
    source: AgentSource, key: str, declared: Sequence[str], references: References
) -> tuple[Callable[..., Any], ...]:
    """The functions of `input_guards` or `output_guards`, in declared order."""
    found = [references.guard(each, source.place((key, index))) for index, each in enumerate(declared)]
    return tuple(each for each in found if each is not None)


def provider_functions(
    declared: Sequence[str], references: References, place: Callable[[int], Location]
) -> tuple[Callable[..., Any], ...]:
    """The functions of a file's `context_providers`, in declared order."""
    found = [references.function(each, place(index), 1, "(ctx)") for index, each in enumerate(declared)]
    return tuple(each for each in found if each is not None)


def sandbox_spec(found: SandboxFile | SandboxMode) -> SandboxSpec:
    """What the manifest's `sandbox` says."""
    if isinstance(found, str):
        return SandboxSpec(found)
    return SandboxSpec(found.mode, tuple(found.writable), tuple(found.readable))


def threads_spec(file: ThreadsFile | None) -> ThreadsSpec:
    """The manifest's `threads` as the runtime reads it."""
    if file is None:
        return ThreadsSpec()
    return ThreadsSpec(
        store=file.store,
        config=ThreadConfig(
            model=file.model if isinstance(file.model, str | None) else tuple(file.model),
            model_settings=dict(file.model_settings),
            enabled_tools=tuple(file.enabled_tools) if file.enabled_tools is not None else None,
            history_limit=file.history_limit,
            system_prompt=file.system_prompt,
            compaction=file.compaction.model_dump(exclude_unset=True) if file.compaction is not None else None,
        ),
        keep_days=file.keep_days,
    )


def hook_functions(
    declared: HooksFile, references: References, place: Callable[[str, int], Location]
) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Hooks as the runtime calls them, in declared order; `references` reports faulty ones."""
    found: list[tuple[str, Callable[..., Any]]] = []
    for point, keywords in HOOK_KEYWORDS.items():
        listed: list[str] = getattr(declared, point)
        for index, reference in enumerate(listed):
            function = references.hook(reference, place(point, index), keywords)
            if function is not None:
                found.append((point, function))
    return tuple(found)


HOOK_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "start": ("agent",),
    "finished": ("agent",),
    "error": ("agent", "error"),
    "pre_llm_call": ("agent", "messages"),
    "post_llm_call": ("agent", "response"),
    "pre_tool_call": ("agent", "tool_name", "arguments"),
    "post_tool_call": ("agent", "tool_name", "result"),
}
"""The keywords with which the hooks of each point are called."""


def runtime_settings(file: RuntimeFile) -> RuntimeSettings:
    """The manifest's `runtime` as the runtime reads it."""
    converted = ("record", "budget", "agent_approval_overrides")
    # By the file's keys, so that one that `RuntimeSettings` doesn't have is an error, not a setting without effect.
    plain: Mapping[str, Any] = {
        name: getattr(file, name) for name in type(file).model_fields if name not in (*converted, "auth_mode")
    }
    overrides = {
        name: Overrides(item.calls_require_approval, item.attachments_require_approval)
        for name, item in file.agent_approval_overrides.items()
    }
    return RuntimeSettings(
        **plain,
        record_settings=RecordSettings(**file.record.model_dump()),
        budget=Budget(**file.budget.model_dump()),
        agent_approval_overrides=overrides,
    )


def _gate(file: StateGate, place: Location) -> Gate:
    return Gate(
        tuple(file.requires), tuple(file.forbids), tuple(file.needs), tuple(file.enables), tuple(file.disables), place
    )


def _toolset_refs(source: AgentSource, value: AgentFile) -> tuple[ToolsetRef, ...]:
    if not value.toolsets:
        return ()
    return tuple(
        ToolsetRef(
            name,
            use.prefix,
            tuple(use.include),
            tuple(use.exclude),
            use.options,
            source.place(loc) if isinstance(loc[-1], int) else source.key_place(loc),
        )
        for name, use, loc in value.toolset_uses()
    )


def _capabilities(source: AgentSource, value: AgentFile) -> tuple[CapabilityRef, ...]:
    from llm_do.project.capabilities import read_spec

    items = (item if isinstance(item, str | dict) else item.model_dump() for item in value.capabilities)
    return tuple(
        CapabilityRef(*read_spec(item), source.place(("capabilities", index))) for index, item in enumerate(items)
    )


def _server_side_tools(source: AgentSource, value: AgentFile) -> tuple[ServerSideTool, ...]:
    return tuple(
        ServerSideTool(
            item.tool_type,
            item.model_dump(exclude={"tool_type"}, exclude_none=True),
            source.place(("server_side_tools", index)),
        )
        for index, item in enumerate(value.server_side_tools)
    )
