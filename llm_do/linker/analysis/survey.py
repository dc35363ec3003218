"""What a project would run on this machine, and what it may do without approval, as far as its text says.

Nothing is imported or started for it. It is what a person sees before a folder is trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from llm_do._bounded_files import read_bounded
from llm_do._startup.frozen import frozen
from llm_do.diagnostics.diagnostic import Location
from llm_do.formats.toolset_types.server_commands import named_files
from llm_do.formats.variables import expand_known, references
from llm_do.linker.analysis.inventory import Inventory, KnownTool
from llm_do.linker.sources.file_lists import is_inside
from llm_do.linker.sources.lock_source import read_lock
from llm_do.linker.sources.project_files import ProjectFiles
from llm_do.policy.rules import Policy, build_policy
from llm_do.policy.secrets import is_secret
from llm_do.project.agent_spec import AgentSpec, CapabilityRef, ToolsetRef
from llm_do.project.flow_spec import every_agent
from llm_do.project.registry import Registered
from llm_do.project.store_location import is_database
from llm_do.project.tools.builtin_toolsets import BUILTINS, BuiltinToolset

__all__ = ["LeftOut", "Survey", "Surveyed", "file_digests", "left_out", "survey", "without_unread"]

_PASSWORD = re.compile(r"(://[^:@/]*:)(?!\$\{)[^@]*@")
"""A password in a URL, unless it is a variable."""

_SEPARATOR = re.compile(r"[\s:;,=]+")
"""What separates paths in a variable, such as `NODE_OPTIONS=--require=./a.js`."""

_MOST_FILES = 5000
"""Files and folders that the search for helper modules looks at."""


@frozen
class Surveyed:
    """One thing that a project runs or allows.

    Args:
        text: The file, the command of a server, or the rule.
        place: `file:line` where it is declared; empty for a file.
    """

    text: str
    place: str = ""


@frozen
class Survey:
    """What a project would run, and what it allows.

    Args:
        root: The project's folder.
        python: The Python files that linking imports.
        helpers: Other Python files that these can import.
        servers: MCP servers, each with its command or address.
        programs: Files of the project that are named in the commands of servers.
        databases: The database that it keeps its records in.
        records: The file of the folder whose recorded runs are continued.
        allowed: What needs no approval: rules that allow, modes, and what the lock allows.
        found: What a file of approvals in the folder would allow once the folder is trusted.
        protected: Protected places that tools may read or change.
        reaches: What its tools reach of this machine outside of the folder: files, private networks, and variables of
            the environment that they send.
        packages: What it uses of installed packages.
        commands: Whether rules or modes allow commands.
    """

    root: Path
    python: tuple[Surveyed, ...] = ()
    helpers: tuple[Surveyed, ...] = ()
    servers: tuple[Surveyed, ...] = ()
    programs: tuple[Surveyed, ...] = ()
    databases: tuple[Surveyed, ...] = ()
    records: tuple[Surveyed, ...] = ()
    allowed: tuple[Surveyed, ...] = ()
    found: tuple[Surveyed, ...] = ()
    protected: tuple[Surveyed, ...] = ()
    reaches: tuple[Surveyed, ...] = ()
    packages: tuple[Surveyed, ...] = ()
    commands: bool = False

    @property
    def runs_something(self) -> bool:
        """Whether a run starts or contacts something of the folder by itself, or gives it what is the person's own,
        so that it needs trust first.
        """
        contacts = self.servers or self.databases
        opens = self.protected or self.reaches
        return bool(self.python or contacts or self.records or opens or self.commands)


@frozen
class LeftOut:
    """What linking left out of a folder that is closed.

    Args:
        python: The Python files that weren't imported.
        names: What isn't known therefore: the names that each agent lists.
        policy: The policy function that wasn't asked.
        assertions: How many assertions weren't proved.
        packages: What the project uses of installed packages, which weren't imported.
    """

    python: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    policy: str | None = None
    assertions: int = 0
    packages: tuple[str, ...] = ()


def survey(
    files: ProjectFiles,
    taken: Mapping[str, Registered],
    unread: Sequence[str],
    packages: Sequence[str],
    variables: Mapping[str, str],
) -> Survey:
    """Return what a project that was linked as text would run and allow; what its `.env` says is shown filled in."""
    own = {name: value for name, value in variables.items() if os.environ.get(name) != value}
    inventory = Inventory(taken)
    agents = [spec for spec, _ in every_agent(taken)]
    tools = [tool for spec in agents for tool in inventory.of(spec).tools]
    configs = list(_configs(taken, agents))
    allowed, commands = _allowed(files, tools, configs)
    return Survey(
        root=files.root,
        python=tuple(map(Surveyed, dict.fromkeys(unread))),
        helpers=tuple(map(Surveyed, _helpers(files, unread))) if unread else (),
        servers=tuple(dict.fromkeys(_servers(configs, own))),
        programs=tuple(dict.fromkeys(_programs(files.root, configs, variables))),
        databases=tuple(_databases(files, own)),
        allowed=tuple(dict.fromkeys(allowed)),
        protected=tuple(dict.fromkeys(_protected(configs))),
        reaches=tuple(dict.fromkeys((*_reaches(files.root, configs), *_working_directory(files.root, agents)))),
        packages=tuple(map(Surveyed, dict.fromkeys(packages))),
        commands=commands,
    )


_Config = tuple[str, Mapping[str, object], Location | None]
"""A toolset's name, its options and where they stand."""


def _configs(taken: Mapping[str, Registered], agents: Sequence[AgentSpec]) -> Iterator[_Config]:
    """Every configured toolset as the manifest has it, and as each agent that has options of its own for it."""
    for item in taken.values():
        if isinstance(item.value, BuiltinToolset):
            yield item.name, item.value.config, item.place
    changed = ((ref, spec) for spec in agents for ref in spec.toolsets if isinstance(ref, ToolsetRef) and ref.options)
    for ref, spec in changed:
        found = taken.get(ref.name)
        if found is not None and isinstance(found.value, BuiltinToolset):
            yield ref.name, {**found.value.config, **ref.options}, ref.place or spec.place


def _servers(configs: Sequence[_Config], own: Mapping[str, str]) -> Iterator[Surveyed]:
    for name, config, place in configs:
        if config.get("type") != "mcp":
            continue
        from llm_do.formats.toolset_config import McpConfig

        shown = McpConfig.model_construct(**{"type": "mcp", **config})  # pyright: ignore[reportArgumentType]
        command = None
        if isinstance(shown.command, list | tuple):
            command = " ".join([*_assignments(shown.env), *map(str, shown.command)])
        yield Surveyed(f"{name}: {_shown(command or str(shown.url), own)}", _text(place))


def _assignments(env: object) -> Iterator[str]:
    """A server's environment as a shell would have it before the command, which it may turn into another one."""
    for name, value in cast("Mapping[str, object]", env).items() if isinstance(env, Mapping) else ():
        text = str(value)
        yield f"{name}={'...' if not any(references(text)) and is_secret(name, text) else text}"


def _shown(text: str, own: Mapping[str, str]) -> str:
    """A text with what the folder's own `.env` makes of it, which isn't visible otherwise; secrets stay names."""
    hidden = {name for name, value in own.items() if is_secret(name, _PASSWORD.sub(r"\1...@", value))}
    return expand_known(text, {name: value for name, value in own.items() if name not in hidden})


def _databases(files: ProjectFiles, own: Mapping[str, str]) -> Iterator[Surveyed]:
    """The database that the manifest names, without a password that stands there."""
    threads = files.manifest.threads if files.manifest is not None else None
    if threads is not None and is_database(store := threads.store):
        yield Surveyed(_PASSWORD.sub(r"\1...@", _shown(store, own)), _text(files.place("threads", "store")))


def _programs(root: Path, configs: Sequence[_Config], variables: Mapping[str, str]) -> Iterator[Surveyed]:
    """The files of the project that the commands of servers and their environment name."""
    for _, config, _ in configs:
        command = config.get("command") if config.get("type") == "mcp" else None
        if not isinstance(command, list | tuple):
            continue
        words = [*cast("Sequence[object]", command)]
        env = config.get("env")
        for value in cast("Mapping[str, object]", env).values() if isinstance(env, Mapping) else ():
            words += _SEPARATOR.split(expand_known(str(value), variables))
        for path in named_files(root, (expand_known(str(word), variables) for word in words)):
            if os.path.isfile(root / path):
                yield Surveyed(path)


def _allowed(
    files: ProjectFiles, tools: Sequence[KnownTool], configs: Sequence[_Config]
) -> tuple[list[Surveyed], bool]:
    """What needs no approval, commands first, and whether there are any."""
    commands: list[Surveyed] = []
    others: list[Surveyed] = []
    for name, config, place in configs:
        if config.get("type") == "shell":
            texts = cast("Sequence[object]", config.get("allow") or ())
            commands += (Surveyed(f"{name}: {text}", _text(place)) for text in texts)
    shells = [tool for tool in tools if tool.facts.commands]
    if files.manifest is not None:
        modes = commands if shells else others
        if files.manifest.runtime.approval_mode == "approve_all":
            modes.append(Surveyed("whatever needs approval", _text(files.place("runtime", "approval_mode"))))
        if files.manifest.approvals.default == "allow":
            modes.append(Surveyed("every tool, by default", _text(files.place("approvals", "default"))))
    lock = read_lock(files).lock
    locked = lock.approvals if lock is not None else ()
    for each in (each for each in locked if each.rule is None):
        name = str(each.entry.get("tool"))
        runs = any(name in (tool.name, tool.tool) for tool in shells)
        (commands if runs else others).append(Surveyed(f"{name}: one call", each.place))
    for rule in (*_policy(files).allows, *(each.rule for each in locked if each.rule is not None)):
        by_name = any(rule.pattern.names_tool(name) for tool in shells for name in (tool.name, tool.tool))
        runs = bool(shells) and (rule.pattern.action is not None or by_name)
        (commands if runs else others).append(Surveyed(rule.text, rule.place or ""))
    return [*commands, *others], bool(commands)


def _policy(files: ProjectFiles) -> Policy:
    if files.manifest is None:
        return Policy()
    data = files.manifest.approvals.model_dump(exclude_unset=True)
    return build_policy(data, lambda path: _text(files.place(*path)))[0]


def _protected(configs: Sequence[_Config]) -> Iterator[Surveyed]:
    for name, config, place in configs:
        if config.get("type") == "filesystem":
            for glob in cast("Sequence[object]", config.get("allow_protected") or ()):
                yield Surveyed(f"{name}: {glob}", _text(place))


def _reaches(root: Path, configs: Sequence[_Config]) -> Iterator[Surveyed]:
    """What tools reach outside of the folder, whatever is asked: a question about a URL says nothing of its headers."""
    for name, config, place in configs:
        if config.get("type") == "filesystem":
            folder = str(config.get("root", "."))
            if "\0" not in folder and not is_inside(root, folder):
                does = "reads" if config.get("read_only") else "reads and changes"
                yield Surveyed(f"{name}: {does} files in {os.path.realpath(root / folder)}", _text(place))
        elif config.get("type") in ("http", "mcp"):
            for header, value in cast("Mapping[str, object]", config.get("headers") or {}).items():
                if any(references(str(value))):
                    yield Surveyed(
                        f"{name}: sends {header}: {value} to {config.get('base_url') or config.get('url')}",
                        _text(place),
                    )
            for host in cast("Sequence[object]", config.get("private") or ()):
                yield Surveyed(f"{name}: requests {host}", _text(place))


def _working_directory(root: Path, agents: Sequence[AgentSpec]) -> Iterator[Surveyed]:
    """Files of the directory that a command was started in, if it isn't the project's."""
    here = os.path.realpath(".")
    if Path(here).is_relative_to(os.path.realpath(root)):
        return
    for spec in agents:
        for item in spec.toolsets:
            name = item.name if isinstance(item, ToolsetRef) else item
            if isinstance(name, str) and name.startswith("filesystem_cwd"):
                does = "reads" if name.endswith("_ro") else "reads and changes"
                yield Surveyed(f"{name}: {does} files in {here}", _text(spec.place))


def _text(place: Location | None) -> str:
    return f"{place.file}:{place.line}" if place is not None and place.file else ""


def _helpers(files: ProjectFiles, unread: Sequence[str]) -> list[str]:
    """The other Python files below the folder: any of them may be imported by those that are."""
    found: list[str] = []
    seen = 0
    for folder, folders, names in os.walk(files.root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        inside = os.path.relpath(folder, files.root).replace(os.sep, "/")
        for name in sorted(names):
            label = name if inside == "." else f"{inside}/{name}"
            if name.endswith(".py") and label not in unread and os.path.isfile(files.root / label):
                hidden = files.new_code.hides_module(files.root / label, listed=False)
                found += [] if hidden else [label]
        seen += len(names) + len(folders)
        if seen > _MOST_FILES:
            break
    return found


def file_digests(seen: Survey) -> dict[str, str]:
    """Return a digest of each file that would run, by which a change of it is noticed."""
    return {item.text: _digest(seen.root / item.text) for item in (*seen.python, *seen.programs, *seen.helpers)}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bounded(path)).hexdigest()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):  # it may be a large program: then the system says when it was changed
            info = path.stat()
            return f"{info.st_dev} {info.st_ino} {info.st_size} {info.st_ctime_ns}"
        return str(error)


def left_out(
    files: ProjectFiles, taken: Mapping[str, Registered], unread: Sequence[str], packages: Sequence[str]
) -> LeftOut | None:
    """Return what isn't known of a project because its Python files, and packages that it uses, weren't imported."""
    if not unread and not packages:
        return None
    policy = files.manifest.approvals.policy if files.manifest is not None and unread else None
    assertions = len(files.manifest.permissions.assertions) if files.manifest is not None else 0
    names = {spec.name: tuple(_unknown(spec, taken)) for spec, _ in every_agent(taken)}
    known = {name: found for name, found in names.items() if found}
    return LeftOut(tuple(dict.fromkeys(unread)), known, policy, assertions, tuple(dict.fromkeys(packages)))


def _unknown(spec: AgentSpec, taken: Mapping[str, Registered]) -> Iterator[str]:
    for item in (*spec.tools, *spec.toolsets, *spec.handoffs):
        name = item if isinstance(item, str) else item.name if isinstance(item, ToolsetRef) else None
        if name is not None and not _is_known(name, taken):
            yield name
    yield from (item.name for item in spec.capabilities if isinstance(item, CapabilityRef))


def _is_known(name: str, taken: Mapping[str, Registered]) -> bool:
    return name in taken or name in BUILTINS


def without_unread(taken: Mapping[str, Registered]) -> dict[str, Registered]:
    """Return the registered names, with agents that list none that isn't known."""

    def keep(item: object) -> bool:
        if isinstance(item, CapabilityRef):
            return False
        name = item if isinstance(item, str) else item.name if isinstance(item, ToolsetRef) else None
        return name is None or _is_known(name, taken)

    return {
        name: replace(item, value=_reduced(item.value, keep)) if isinstance(item.value, AgentSpec) else item
        for name, item in taken.items()
    }


def _reduced(spec: AgentSpec, keep: Callable[[object], bool]) -> AgentSpec:
    return replace(
        spec,
        tools=tuple(filter(keep, spec.tools)),
        toolsets=tuple(filter(keep, spec.toolsets)),
        handoffs=tuple(filter(keep, spec.handoffs)),
        capabilities=tuple(filter(keep, spec.capabilities)),
    )
