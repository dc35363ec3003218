"""Compares a server's tools with what was reviewed of them: with the lock, else with what this machine has seen.

A tool that has changed is withdrawn: its model sees it as it was, and only a person who is shown the change can allow a
call. A new tool, or a new argument, is only allowed by rules that name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from llm_do._startup.frozen import frozen
from llm_do.concurrency.worker_threads import run_in_worker
from llm_do.errors import LinkError, StoreError
from llm_do.formats.lock import FILE, LockedServer
from llm_do.formats.server_changes import change_lines, new_arguments, server_changes, tool_changes, tool_digest
from llm_do.formats.server_listings import ListedTool
from llm_do.formats.toolset_config import McpConfig
from llm_do.policy.tool_facts import ToolFacts
from llm_do.policy.values import Decision, ToolCallInfo
from llm_do.runtime.tools.traits import Preview, ToolTraits
from llm_do.toolsets.mcp.seen_tools import SeenServer, load_seen, save_seen

__all__ = ["ReviewedServer", "ToolReview"]


@frozen
class ToolReview:
    """How a tool compares with what was reviewed.

    Args:
        server: The server's name.
        state: Whether it is as it was, new, or changed.
        now: The tool as the server has it now.
        before: The tool as it was reviewed; None for a new one.
        added: Arguments that the server has added and no lock has.
    """

    server: str
    state: Literal["known", "new", "changed"]
    now: ListedTool
    before: ListedTool | None = None
    added: tuple[str, ...] = ()

    @property
    def shown(self) -> ListedTool:
        """The tool as its model sees it: what wasn't reviewed of a changed tool isn't sent."""
        if self.state != "changed" or self.before is None:
            return self.now
        note = "Withdrawn: its server has changed this tool, and calls fail until a person has reviewed the change."
        text = f"{note}\n\n{self.before.description}" if self.before.description else note
        return ListedTool(self.now.name, text, self.before.schema, self.before.annotations)

    def traits(self) -> ToolTraits:
        """The tool's traits."""
        changed = self.state == "changed"
        return ToolTraits(
            ToolFacts("mcp"),
            toolset=self.server,
            tool=self.now.name,
            unchecked=True,
            decide=self._decide if changed else None,
            preview=self._preview if changed else None,
            new_tool=self.state == "new",
            new_arguments=self.added,
        )

    def lines(self) -> list[str]:
        """The change, as lines of a diff."""
        return change_lines(tool_changes(self.before, self.now)) if self.before is not None else []

    def _decide(self, info: ToolCallInfo) -> Decision:
        fields = [change.name for change in tool_changes(self.before or self.now, self.now)] or [
            "its entry in the lock"
        ]
        named = ", ".join(fields[:3]) + (f" and {len(fields) - 3} more" if len(fields) > 3 else "")
        reason = f"the MCP server {self.server} has changed {self.now.name} ({named}); `llm-do lock` accepts the change"
        return Decision("ask", reason, person_only=True)

    def _preview(self, _args: Mapping[str, object]) -> Preview:
        return Preview("\n".join(self.lines()), tool_digest(self.now))


class ReviewedServer:
    """What was reviewed of one server, for one session.

    Args:
        name: Its name.
        config: Its configuration.
        root: The project's folder.
        locked: What the lock has of it; None if it has nothing.
    """

    def __init__(self, name: str, config: McpConfig, root: Path, locked: LockedServer | None) -> None:
        self._name = name
        self._config = config.model_dump()
        self._root = root
        self._locked = locked
        self._seen: SeenServer | None = None
        self._reviews: dict[str, ToolReview] = {}
        self.fault: str | None = None

    async def review(self, tools: Mapping[str, ListedTool]) -> Mapping[str, ToolReview]:
        """Compare the tools that the server lists now; the first ones that this machine sees count as reviewed."""
        if self._locked is None and self._seen is None:
            self._seen = await run_in_worker(self._load, tools)
        known = {name: self._known(tool) for name, tool in tools.items()}
        unknown = [tool for name, tool in tools.items() if known[name] is None]
        compared = await run_in_worker(lambda: {tool.name: self._compare(tool) for tool in unknown}) if unknown else {}
        self._reviews = {name: review or compared[name] for name, review in known.items()}
        return self._reviews

    def check_frozen(self, reviews: Mapping[str, ToolReview]) -> None:
        """Raise `LinkError` unless the lock has these tools as they are."""
        hint = f"`llm-do lock --check` shows the difference, and `llm-do lock` rewrites {FILE}."
        if self._locked is None:
            raise LinkError(f"the run is frozen, and {FILE} has no MCP server {self._name}", hint=hint)
        differences = self._differences(self._locked, {name: review.now for name, review in reviews.items()})
        if differences:
            raise LinkError(
                f"the run is frozen, and the MCP server {self._name} isn't as {FILE} has it: {'; '.join(differences)}",
                hint=hint,
            )

    def _differences(self, locked: LockedServer, now: Mapping[str, ListedTool]) -> list[str]:
        """How the server differs from the lock, each kind of difference with the tools that have it."""
        changes = server_changes(locked.tools, now)
        edited = sorted(locked.edited - {*changes.changed, *changes.gone, *changes.renamed.values()})
        kinds = {
            "it no longer offers": changes.gone,
            "it has changed": [*changes.changed],
            "it has added": changes.new,
            "it has renamed": [f"{old} to {new}" for new, old in changes.renamed.items()],
            f"{FILE} was edited at": edited,
        }
        found = [f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names]
        return found if locked.is_at(self._config) else ["its command or URL differs", *found]

    async def accept(self, name: str) -> None:
        """Count a tool as seen, since a person has allowed a call of it; a lock is changed by `llm-do lock` only."""
        review = self._reviews.get(name)
        if self._locked is not None or self._seen is None or review is None or review.state == "known":
            return
        added = new_arguments(review.before, review.now) if review.before is not None else ()
        known = tuple(dict.fromkeys((*self._seen.added.get(name, ()), *added)))
        self._seen = SeenServer({**self._seen.tools, name: review.now}, {**self._seen.added, name: known})
        await run_in_worker(self._save, self._seen)

    def _load(self, tools: Mapping[str, ListedTool]) -> SeenServer:
        try:
            seen = load_seen(self._root, self._name, self._config)
        except StoreError as error:
            self.fault = f"{error.message}; all its tools count as new. {error.hint}"
            return SeenServer({}, {})
        if seen is None:
            seen = SeenServer(dict(tools), {})
            self._save(seen)
        return seen

    def _save(self, seen: SeenServer) -> None:
        try:
            save_seen(self._root, self._name, self._config, seen)
        except OSError as error:
            reason = error.strerror or str(error)
            self.fault = f"the tools of the MCP server {self._name} can't be kept to notice changes: {reason}"

    def _known(self, tool: ListedTool) -> ToolReview | None:
        """The last review of a tool, if nothing has changed since: an agent lists its tools before each request."""
        last = self._reviews.get(tool.name)
        return last if last is not None and last.state == "known" and last.now == tool else None

    def _compare(self, tool: ListedTool) -> ToolReview:
        locked, seen = self._locked, self._seen or SeenServer({}, {})
        edited, added = False, seen.added.get(tool.name, ())
        known: Mapping[str, ListedTool] = seen.tools
        if locked is not None:
            known = locked.tools if locked.is_at(self._config) else {}
            edited = tool.name in locked.edited
        before = known.get(tool.name)
        if before is None:
            return ToolReview(self._name, "new", tool)
        if edited or tool_changes(before, tool):
            return ToolReview(self._name, "changed", tool, before, (*added, *new_arguments(before, tool)))
        return ToolReview(self._name, "known", tool, before, added)
