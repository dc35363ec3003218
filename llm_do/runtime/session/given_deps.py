"""The dependencies that a run is given: whether it has those that it needs, and needs those that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do.errors import UsageError
from llm_do.project.flow_spec import every_agent
from llm_do.runtime.call.own_deps import deps_fault
from llm_do.runtime.session.entries import AgentEntry, Entry, FlowEntry

if TYPE_CHECKING:
    from llm_do.project.registry import Registry
    from llm_do.runtime.session.durable_runs import EarlierRun

__all__ = ["check_deps", "check_deps_again"]


def check_deps(entry: Entry, registry: Registry, deps: object) -> None:
    """Refuse a run whose agent needs dependencies that it isn't given, and dependencies that no agent takes.

    Raises:
        UsageError: There are none, some of another type, or some for no one.
    """
    if isinstance(entry, AgentEntry) and (fault := deps_fault(entry.spec, deps)):
        raise UsageError(fault[0], hint=fault[1])
    if deps is None or not isinstance(entry, AgentEntry | FlowEntry):
        return
    if all(spec.deps_type is None for spec, _ in every_agent(registry)):
        name = type(deps).__qualname__
        raise UsageError(
            f"the run was given dependencies of type {name}, and no agent takes any",
            hint=f"Declare their type: AgentSpec(..., deps_type={name}).",
        )


def check_deps_again(earlier: EarlierRun, deps: object) -> None:
    """Refuse to resume a run without the dependencies that it began with, which nothing can store.

    Raises:
        UsageError: There are none.
    """
    begun = earlier.beginning.deps
    if begun is not None and deps is None:
        raise UsageError(
            f"run {earlier.run.id} began with dependencies of type {begun}, which aren't stored with it",
            hint=f"Pass a {begun} again, from Python: runtime.resume(run_id, deps=...). The command line, servers and "
            "workers can't.",
        )
