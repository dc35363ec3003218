"""Whether a name can be that of a tool that is only known in a run, by what is known before: prefixes and globs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from llm_do.linker.analysis.inventory import Origin
from llm_do.policy.rules import as_texts
from llm_do.project.registry import Registered
from llm_do.project.tools.builtin_toolsets import BuiltinToolset
from llm_do.project.tools.tool_schemas import is_included
from llm_do.text.words import closest_match

__all__ = ["may_be_listed"]


def may_be_listed(
    name: str, known: Iterable[str], origins: Iterable[Origin], registry: Mapping[str, Registered], *, own: bool = False
) -> bool:
    """Whether a server or factory may list a tool of this name.

    A name with a typing error of a known one isn't expected of anybody. With `own`, the name may also be a tool's own,
    without its prefix.
    """
    if closest_match(name, list(known), spelling_only=True) is not None:
        return False
    return any(_may_come_from(name, origin, registry, own=own) for origin in origins)


def _may_come_from(name: str, origin: Origin, registry: Mapping[str, Registered], *, own: bool) -> bool:
    ref = origin.ref
    if ref is None:
        return True
    registered = registry.get(ref.name)
    config: Mapping[str, object] = {}
    if registered is not None and isinstance(registered.value, BuiltinToolset):
        config = registered.value.config
    prefix = ref.prefix
    if prefix is None and config.get("type") == "mcp":
        own_prefix = config.get("prefix")
        prefix = ref.name if own_prefix is None else str(own_prefix)
    candidates = list(_own_names(name, prefix, own=own))
    globs = [(ref.include, ref.exclude), (as_texts(config.get("include")), as_texts(config.get("exclude")))]
    return any(all(is_included(each, *pair) for pair in globs) for each in candidates)


def _own_names(name: str, prefix: str | None, *, own: bool) -> Iterator[str]:
    if not prefix or own:
        yield name
    if prefix and name.startswith(f"{prefix}_"):
        yield name.removeprefix(f"{prefix}_")
