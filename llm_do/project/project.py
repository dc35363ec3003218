"""`Project`: the result of linking. Frozen; the runtime only reads it.

`llm_do.linker.linker` creates one from files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from llm_do._extensions import ExtensionPoint
from llm_do._startup.code_access import open_copy
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Diagnostic, Location
from llm_do.policy.rules import Policy
from llm_do.project.registry import Registry
from llm_do.project.sandbox_spec import SandboxSpec
from llm_do.project.thread_config import ThreadsSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

    from llm_do.formats.lock import Lock
    from llm_do.policy.assertions import Assertion
    from llm_do.project.agent_spec import AgentSpec, ModelChoice
    from llm_do.project.skill import Skill

__all__ = [
    "Bounds",
    "Budget",
    "CassetteSettings",
    "DeclaredAssertion",
    "EntrySpec",
    "Overrides",
    "Project",
    "RecordSettings",
    "RuntimeSettings",
    "carried_approval",
]

LINK: ExtensionPoint[Callable[[Path, Path | None, str | None], Project]] = ExtensionPoint("link")
"""From a path to the linked project."""


class Modules(Protocol):
    """A project's Python modules, which stay importable while this object lives."""

    @property
    def public(self) -> Callable[[str], str]:
        """Writes the internal names of modules in a text as their author knows them."""
        ...


@frozen
class EntrySpec:
    """The entry: what a run starts with.

    Args:
        kind: An agent, a flow, or a function.
        name: The agent's or flow's registered name, or the function's own name.
        function: The function, for a function entry; None for one that is a tool of the project by its name.
        input_model: The entry's input model; None for `PromptInput` (for an agent: the agent's own).
        args: Default input.
        place: Where it is declared.
    """

    kind: Literal["agent", "flow", "function"]
    name: str
    function: Callable[..., Any] | None = None
    input_model: type[BaseModel] | None = None
    args: Mapping[str, Any] | None = None
    place: Location | None = None


@frozen
class DeclaredAssertion:
    """One of the manifest's assertions.

    Args:
        assertion: What it says.
        place: Where it is declared.
        places: Where each of its terms is, then its state.
    """

    assertion: Assertion
    place: Location
    places: tuple[Location, ...] = ()


@frozen
class Bounds:
    """The manifest's `bounds`: the most that a run may take in the worst case; None for no maximum.

    Args:
        requests: Model requests, retries included.
        tool_calls: Tool calls that run.
        cost_usd: US dollars.
        places: Where each of them is declared.
    """

    requests: int | None = None
    tool_calls: int | None = None
    cost_usd: float | None = None
    places: Mapping[str, Location] = field(default_factory=dict[str, Location])


@frozen
class Budget:
    """Limits for a run, including nested and parallel calls; None for no limit.

    Args:
        requests: Model requests.
        tool_calls: Tool calls that run.
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        total_tokens: Both together.
        cost_usd: US dollars.
        descendants: Nested calls.
    """

    requests: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    descendants: int | None = None


@frozen
class Overrides:
    """Whether calls to one agent need approval; None for the project's setting."""

    calls_require_approval: bool | None = None
    attachments_require_approval: bool | None = None


@frozen
class CassetteSettings:
    """The manifest's `cassette`: what recordings of runs contain in addition to requests.

    Args:
        tools: Names or patterns of tools whose results are recorded and replayed.
        ignore: Regular expressions of text that counts as equal.
    """

    tools: Sequence[str] = ()
    ignore: Sequence[str] = ()


@frozen
class RecordSettings:
    """The manifest's `runtime.record`: how much of what models are sent is kept.

    Args:
        exchanges: Whether recorded runs keep their requests and responses.
        keep_days: Days after which they are dropped.
        max_mb: Megabytes that the requests and responses of all runs may take; the oldest runs' are dropped first.

    Example:
        >>> RecordSettings(keep_days=7)
        RecordSettings(exchanges=True, keep_days=7, max_mb=500)
    """

    exchanges: bool = True
    keep_days: int = 30
    max_mb: int = 500


@frozen
class RuntimeSettings:
    """The manifest's `runtime`: limits and modes, with their defaults.

    Args:
        approval_mode: How approval requests are answered: `prompt`, `approve_all` or `reject_all`.
        max_depth: Deepest nested call; the entry agent is at 1.
        max_steps: The most model requests in one agent run.
        loop_threshold: How many identical batches of tool calls end a run; 0 turns this off.
        max_retries: Retries of a model request after a transient failure.
        on_tool_error: `return` a tool's error to the model, or `raise` it and end the run.
        tool_timeout: Seconds a tool call may take.
        run_timeout: Seconds a run may take.
        max_concurrency: The most model requests in flight.
        max_calls_per_response: The most tool calls of one model response that run.
        max_result_bytes: The most bytes of a tool result sent to a model.
        record_settings: How much of what models are sent is kept.
        budget: Limits for a run.
        return_permission_errors: Return a denial to the model; False ends the run.
        agent_calls_require_approval: Whether calling an agent or a flow, or handing over, needs approval.
        agent_attachments_require_approval: Whether attaching files to such a call needs approval.
        agent_approval_overrides: The two settings above for single agents.
    """

    approval_mode: Literal["prompt", "approve_all", "reject_all"] = "prompt"
    max_depth: int = 5
    max_steps: int = 10
    loop_threshold: int = 3
    max_retries: int = 3
    on_tool_error: Literal["return", "raise"] = "return"
    tool_timeout: float | None = None
    run_timeout: float | None = None
    max_concurrency: int = 50
    max_calls_per_response: int = 128
    max_result_bytes: int = 65_536
    record_settings: RecordSettings = field(default_factory=RecordSettings)
    budget: Budget = field(default_factory=Budget)
    return_permission_errors: bool = True
    agent_calls_require_approval: bool = False
    agent_attachments_require_approval: bool = False
    agent_approval_overrides: Mapping[str, Overrides] = field(default_factory=dict[str, Overrides])


def carried_approval(settings: RuntimeSettings, tool: str, kind: str) -> Literal["allow", "ask"] | None:
    """Return what `agent_approval_overrides` says about the function that one of its agents has become.

    Example:
        >>> settings = RuntimeSettings(agent_approval_overrides={"mood": Overrides(calls_require_approval=False)})
        >>> carried_approval(settings, "mood", "function"), carried_approval(settings, "mood", "agent")
        ('allow', None)
    """
    override = settings.agent_approval_overrides.get(tool)
    if kind != "function" or override is None or override.calls_require_approval is None:
        return None
    return "ask" if override.calls_require_approval else "allow"


@dataclass(frozen=True, eq=False)
class Project:
    """A linked project: a registry of names and an entry.

    Args:
        root: The folder that paths in its files are relative to.
        entry: What a run starts with.
        registry: All registered names.
        manifest: Path of `project.json`; None for an implied one.
        name: The project's name, for display.
        description: What the project does, for display.
        model: Default model.
        model_aliases: The manifest's `models`: a model, or several to try in order, by alias.
        model_settings: Default model settings.
        settings: Limits and modes.
        allow_cli_input: Whether input may be passed on the command line.
        policy: The manifest's rules, each with its place.
        policy_function: The function that `approvals.policy` names.
        assertions: The manifest's assertions about permissions.
        bounds: The most that a run may take in the worst case.
        hooks: The manifest's hooks, for every agent: `(point, function)` pairs in declared order.
        context_providers: Functions that add to the instructions of every agent.
        threads: Where threads are stored, and how new ones are configured.
        toolset_configs: The manifest's `toolsets`: configurations by name.
        files: Every file that was read; `check` lists them, and models may not write them.
        python_files: The listed Python files.
        record: Whether runs are recorded on disk.
        generated_agents_dir: Where `agent_create` writes.
        code_patterns: The manifest's paths and globs of agent files and Python files.
        skills: The skills of agents that declare none themselves.
        capability_types: The capabilities that Python files register, by name.
        skill_patterns: The paths and globs of folders of skills, in the manifest and in agents.
        data_folders: Folders whose Python files are data: nothing in them is loaded, so tools may write them.
        sandbox: How commands that run without approval are confined.
        cassette: What recordings of runs contain in addition to requests.
        lock: What `llm-do.lock` says; None without one.
        packages: The versions of installed packages whose toolsets and models it uses.
        warnings: Warnings from linking.
        modules: Keeps the project's Python modules importable.
        source: The folder that its files were read from, if that isn't `root`.
        env_file: A file whose variables were read in addition to those of `.env`.

    Example:
        >>> project = Project.load("examples/greeter")
        >>> project.entry.name
        'main'
    """

    root: Path
    entry: EntrySpec
    registry: Registry
    manifest: Path | None = None
    name: str | None = None
    description: str | None = None
    model: ModelChoice | None = None
    model_aliases: Mapping[str, str | Sequence[str]] = field(default_factory=dict[str, "str | Sequence[str]"])
    model_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    allow_cli_input: bool = True
    policy: Policy = field(default_factory=Policy)
    policy_function: Callable[..., Any] | None = None
    assertions: Sequence[DeclaredAssertion] = ()
    bounds: Bounds = field(default_factory=Bounds)
    hooks: Sequence[tuple[str, Callable[..., Any]]] = ()
    context_providers: Sequence[Callable[..., Any]] = ()
    threads: ThreadsSpec = field(default_factory=ThreadsSpec)
    toolset_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    files: Sequence[Path] = ()
    python_files: Sequence[Path] = ()
    record: bool = True
    generated_agents_dir: Path | None = None
    code_patterns: Sequence[str] = ()
    skills: Sequence[Skill] = ()
    capability_types: Mapping[str, type[Any]] = field(default_factory=dict[str, type[Any]])
    skill_patterns: Sequence[str] = ()
    data_folders: Sequence[str] = ()
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    cassette: CassetteSettings = field(default_factory=CassetteSettings)
    lock: Lock | None = None
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: Sequence[Diagnostic] = ()
    modules: Modules | None = field(default=None, repr=False)
    source: Path | None = None
    env_file: str | None = None

    @classmethod
    def load(cls, path: str | Path = ".", *, root: Path | None = None, env_file: str | None = None) -> Project:
        """Link the project at `path`.

        Args:
            path: A folder, a manifest, or one `.agent` file.
            root: The folder that its tools work in, if the files at `path` are a copy of those of another folder.
            env_file: A file with variables for `${NAME}` and keys of providers, in addition to the project's `.env`; a
                `Runtime` that isn't given another one reads it too.

        Returns:
            The linked project, with any warnings in `warnings`.

        Raises:
            UsageError: There is no project at `path`, or `env_file` can't be read.
            LinkError: The project has errors; the exception contains every diagnostic.
        """
        if root is not None:
            open_copy(root, Path(path) if os.path.isdir(path) else Path(path).parent)
        linked = LINK.get()(Path(path), root, env_file)
        return linked if root is None else linked._moved(root)

    def _moved(self, root: Path) -> Project:
        """The project for another folder, with the files that it was linked from as its source."""

        def there(path: Path) -> Path:
            return root / path.relative_to(self.root) if path.is_relative_to(self.root) else path

        return replace(
            self,
            root=root,
            source=self.root,
            manifest=there(self.manifest) if self.manifest is not None else None,
            files=[there(path) for path in self.files],
            python_files=[there(path) for path in self.python_files],
            generated_agents_dir=there(self.generated_agents_dir) if self.generated_agents_dir is not None else None,
        )

    def is_generated(self, agent: AgentSpec) -> bool:
        """Check whether `agent_create` wrote an agent's file."""
        folder = self.generated_agents_dir
        return folder is not None and agent.place is not None and (self.root / agent.place.file).parent == folder
