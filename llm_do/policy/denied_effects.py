"""`DeniedEffects`: what rules deny an agent whatever it calls, for whoever can hold that against programs.

A rule such as `files.read(secret/**)` is about any call, but the words of a command may not say what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable

from llm_do._startup.frozen import frozen
from llm_do.policy.call_effects import is_any_host
from llm_do.policy.matcher import applies_to_agent
from llm_do.policy.pattern import Action, Pattern
from llm_do.policy.rules import Rule
from llm_do.policy.values import ToolCallInfo
from llm_do.text.globs import PathGlob

__all__ = ["DeniedEffects", "denied_effects"]

_EVERYTHING = PathGlob((None,))


@frozen
class DeniedEffects:
    """The paths, as globs below a project's folder, and the network that rules deny an agent.

    Args:
        reads: Paths that mustn't be read.
        writes: Paths that mustn't be written.
        network: Whether no host may be reached.
    """

    reads: tuple[PathGlob, ...] = ()
    writes: tuple[PathGlob, ...] = ()
    network: bool = False


def denied_effects(rules: Iterable[Rule], call: ToolCallInfo) -> DeniedEffects:
    """Return what rules that deny forbid the agent of a call.

    Example:
        >>> from llm_do.policy.rules import option_rules
        >>> found = denied_effects(option_rules("deny", ["files.read(a/**)", "net"]), ToolCallInfo("shell", {}))
        >>> len(found.reads), len(found.writes), found.network
        (1, 0, True)
    """
    patterns = [rule.pattern for rule in rules if rule.pattern.action is not None]
    patterns = [pattern for pattern in patterns if applies_to_agent(pattern, call)]
    return DeniedEffects(
        _globs(patterns, "files.read"),
        _globs(patterns, "files.write"),
        any(is_any_host(pattern) for pattern in patterns),
    )


def _globs(patterns: Iterable[Pattern], action: Action) -> tuple[PathGlob, ...]:
    found = [pattern.primary for pattern in patterns if pattern.action == action]
    return tuple(_EVERYTHING if argument is None else argument.path for argument in found)
