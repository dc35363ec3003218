"""PydanticAI's capabilities as parts of an agent: made of what a file says, judged, and divided into what they add.

What a capability adds that a model can call becomes a toolset or a provider's tool of the agent, which take every step
that others take. Of what it does itself, only what can't pass policy, budget or record by is admitted. PydanticAI is
imported only for agents that have capabilities.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from llm_do._startup.frozen import frozen
from llm_do.project.agent_spec import AgentSpec, CapabilityRef, ServerSideTool, ToolsetDef, ToolsetRef
from llm_do.text.words import did_you_mean, with_article

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability

__all__ = [
    "Admitted",
    "CapabilityError",
    "admit",
    "admitted_of",
    "capability_names",
    "give_capabilities",
    "make_capability",
    "overridden",
    "read_spec",
]

PROVIDER_TOOLS = ("web_search", "web_fetch", "code_execution", "image_generation", "x_search", "file_search")
"""The tools of providers that llm-do knows; others may contact servers, or need code that no one has reviewed."""

ADMITTED = frozenset(
    {
        "get_instructions",
        "get_description",
        "get_model_settings",
        "get_toolset",
        "get_native_tools",
        "before_run",
        "after_run",
        "before_model_request",
        "after_model_request",
        "for_run",
        # What makes, names and combines capabilities has no part in a run.
        "get_serialization_name",
        "from_spec",
        "combine",
        "apply",
        "visit_and_replace",
        "replace_occurrence",
        "prefix_tools",
    }
)
"""The methods of a capability that llm-do calls."""

REFUSED: Mapping[str, str] = {
    "get_wrapper_model": "it sends requests past budget and record",
    "get_model": "it chooses the model; `model` does, and may be a list",
    "resolve_model_id": "it chooses the model; `model` does, and `models` in the manifest has aliases",
    "prepare_model_request": "it changes requests where nothing sees it; a `pre_llm_call` hook may",
    "wrap_model_request": "it may hide a limit that was reached; use hooks at `pre_llm_call` and `post_llm_call`",
    "on_model_request_error": "it may hide a limit that was reached; requests are retried by `max_retries`",
    "on_run_error": "it may hide a limit that was reached",
    "wrap_run": "it may hide a limit that was reached; use hooks at `start` and `finished`",
    "get_wrapper_toolset": "it changes the agent's other tools after policy has seen them; use `prefix` and `include`",
    "prepare_tools": "it changes the agent's other tools after policy has seen them; use `states`",
    "get_workspace": "it opens files and commands that no rule covers; use the toolsets `filesystem` and `shell`",
    "handle_deferred_tool_calls": "it answers tool calls without a rule or a person",
}
"""Why a method that llm-do doesn't call is a reason to refuse a capability; others may do anything."""

_OWN_REQUESTS = ("fallback_subagent_model", "fallback_image_model")


@frozen
class Admitted:
    """A capability that was judged.

    Args:
        name: What it is called.
        capability: The capability.
        place: Where it is declared.
    """

    name: str
    capability: AbstractCapability[Any]
    place: object = None


class CapabilityError(ValueError):
    """A capability that an agent can't have.

    Args:
        kind: `unknown`, `arguments`, `refused` or `duplicate`.
        message: Why.
        hint: What to do about it.
    """

    def __init__(self, kind: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint


def read_spec(item: object) -> tuple[str, object]:
    """Read an entry of `capabilities` as PydanticAI does: its name, and None, `(argument,)` or a mapping of arguments.

    Raises:
        ValueError: It isn't one.

    Example:
        >>> read_spec("Caching"), read_spec({"Thinking": "high"}), read_spec({"WebSearch": {"max_uses": 3}})
        (('Caching', None), ('Thinking', ('high',)), ('WebSearch', {'max_uses': 3}))
    """
    if isinstance(item, str):
        return item, None
    data: Mapping[object, object] = cast("Mapping[object, object]", item) if isinstance(item, Mapping) else {}
    if set(data) == {"name", "arguments"} and isinstance(data["name"], str):
        arguments = data["arguments"]
        name = data["name"]
    elif len(data) == 1 and isinstance(name := next(iter(data)), str):
        arguments = data[name]
    else:
        raise ValueError("a capability is a name, or one name with its arguments")
    if "name" in data and (arguments is None or isinstance(arguments, list | tuple)):
        return name, None if arguments is None else tuple(cast("Sequence[object]", arguments))
    named = cast("Mapping[object, object]", arguments) if isinstance(arguments, Mapping) else None
    if named is not None and all(isinstance(key, str) for key in named):
        return name, dict(named)
    return name, (cast("object", arguments),)


def make_capability(ref: CapabilityRef, own: Mapping[str, type[Any]]) -> AbstractCapability[Any]:
    """Make the capability that a file names.

    Args:
        ref: What the file says.
        own: The classes that the project's Python files register, by name.

    Raises:
        CapabilityError: There is none of that name, or it doesn't take these arguments.
    """
    from pydantic_ai.capabilities import CAPABILITY_TYPES, PrefixTools

    kinds: Mapping[str, type[AbstractCapability[Any]]] = {**CAPABILITY_TYPES, **own}
    kind = kinds.get(ref.name)
    if kind is None:
        hint = did_you_mean(ref.name, list(kinds)) or "PydanticAI has none of that name; list a class in `CAPABILITIES`"
        raise CapabilityError("unknown", f"there is no capability `{ref.name}`", hint)
    if kind is PrefixTools:
        return _prefixed(ref, own)
    return _made(ref, kind)


def _prefixed(ref: CapabilityRef, own: Mapping[str, type[Any]]) -> AbstractCapability[Any]:
    from pydantic_ai.capabilities import PrefixTools

    given = _named(ref)
    if set(given) != {"prefix", "capability"} or not isinstance(given["prefix"], str):
        raise CapabilityError("arguments", "`PrefixTools` takes `prefix` and `capability`")
    try:
        name, arguments = read_spec(given["capability"])
    except ValueError as error:
        raise CapabilityError("arguments", f"`PrefixTools`: {error}") from error
    inner = make_capability(replace(ref, name=name, arguments=arguments), own)
    return PrefixTools(wrapped=inner, prefix=given["prefix"])


def _named(ref: CapabilityRef) -> dict[str, Any]:
    arguments = cast("Any", ref.arguments)
    return dict(cast("Mapping[str, Any]", arguments)) if isinstance(arguments, Mapping) else {}


def _made(ref: CapabilityRef, kind: type[AbstractCapability[Any]]) -> AbstractCapability[Any]:
    arguments = cast("Any", ref.arguments)
    args = cast("tuple[Any, ...]", arguments) if isinstance(arguments, tuple) else ()
    named = _named(ref)
    target: Any = kind.from_spec if "from_spec" in vars(kind) else kind.__init__
    bound = () if "from_spec" in vars(kind) else (None,)
    try:
        found = inspect.signature(target).bind(*bound, *args, **named)
    except TypeError as error:
        raise CapabilityError("arguments", f"`{ref.name}`: {error}", _takes(ref.name, target)) from error
    for name, value in found.arguments.items():
        if name != "self":
            found.arguments[name] = _checked(ref.name, name, value, target)
    try:
        return kind.from_spec(*found.args[len(bound) :], **found.kwargs)
    except Exception as error:
        raise CapabilityError("arguments", f"`{ref.name}`: {_words(error)}", _takes(ref.name, target)) from error


def _takes(name: str, target: Callable[..., Any]) -> str:
    names = [each for each in inspect.signature(target).parameters if each not in ("self", "args", "kwargs")]
    return f"`{name}` takes {', '.join(f'`{each}`' for each in names)}" if names else f"`{name}` takes no arguments"


def _checked(capability: str, name: str, value: object, target: Callable[..., Any]) -> object:
    """A value as the type of its parameter, which PydanticAI's dataclasses don't check."""
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

    try:
        hint = get_type_hints(target)[name]
        config = ConfigDict(arbitrary_types_allowed=True)
        adapter = TypeAdapter[Any](hint) if _is_model(hint) else TypeAdapter[Any](hint, config=config)
    except (NameError, KeyError, TypeError, PydanticUserError):
        return value  # its type is known only to its own code, which then checks it
    try:
        valid = adapter.validate_python(value)
    except ValidationError as error:
        raise CapabilityError("arguments", f"`{capability}`: `{name}` {_words(error)}") from error
    except Exception:  # noqa: BLE001 (a type with a validator of its own, for which its code answers)
        return value
    return valid if isinstance(value, str) else value  # a text may stand for a moment or a duration


def _is_model(hint: object) -> bool:
    return hasattr(hint, "__pydantic_config__") or hasattr(hint, "model_config")


def _words(error: Exception) -> str:
    """What is wrong, in one line."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(dict.fromkeys(each["msg"][:1].lower() + each["msg"][1:] for each in first[:3]))
    return " ".join(str(error).split()) or type(error).__name__


def overridden(kind: type[Any]) -> list[str]:
    """List the public methods of a capability that its class has changed."""
    from pydantic_ai.capabilities import AbstractCapability, WrapperCapability

    wraps = issubclass(kind, WrapperCapability)
    base = cast("type[Any]", WrapperCapability if wraps else AbstractCapability)
    names = (name for name in vars(AbstractCapability) if not name.startswith("_"))
    return [
        name
        for name in names
        if callable(getattr(AbstractCapability, name)) and _function(kind, name) is not _function(base, name)
    ]


def _function(kind: type[Any], name: str) -> object:
    found = inspect.getattr_static(kind, name)
    return getattr(found, "__func__", found)


def admit(item: object, name: str | None = None, place: object = None) -> list[Admitted]:
    """Judge a capability; one that only combines others becomes these.

    Raises:
        CapabilityError: It can't be admitted.
    """
    from pydantic_ai.capabilities import AbstractCapability, CombinedCapability

    if not isinstance(item, AbstractCapability):
        what = "a function that makes one in each run" if inspect.isroutine(item) else with_article(type(item).__name__)
        raise CapabilityError("refused", f"{what} can't be judged before a run", "pass the capability itself")
    capability = cast("AbstractCapability[Any]", item)
    if type(capability) is CombinedCapability:
        return [each for part in capability.capabilities for each in admit(part, None, place)]
    shown = name or type(capability).get_serialization_name() or type(capability).__name__
    if (reason := _refusal(capability)) is not None:
        raise CapabilityError("refused", f"the capability `{shown}` can't be used: {reason}")
    return [Admitted(shown, capability, place)]


def _refusal(capability: AbstractCapability[Any]) -> str | None:
    """Why a capability isn't admitted; None if it is."""
    from pydantic_ai.capabilities import MCP, WrapperCapability

    if capability.defer_loading:
        return "`defer_loading` hides its tools from the model until it asks for them; `states` do that"
    if isinstance(capability, MCP):
        return "its server isn't locked or reviewed; declare it among the manifest's `toolsets`, of type `mcp`"
    for name in _OWN_REQUESTS:
        if getattr(capability, name, None) is not None:
            return f"with `{name}` it sends requests past budget and record; call an agent instead"
    changed = overridden(type(capability))
    unknown = [name for name in changed if name not in ADMITTED]
    for name in sorted(unknown, key=lambda each: each not in REFUSED):
        return REFUSED.get(name, f"it has a `{name}` of its own, which llm-do can't judge")
    if "for_run" in changed and ("get_toolset" in changed or "get_native_tools" in changed):
        return "its `for_run` makes its tools unknown before a run; return a function from `get_toolset`"
    if isinstance(capability, WrapperCapability) and (reason := _refusal(cast("Any", capability).wrapped)) is not None:
        return reason
    return _provider_refusal(capability)


def _provider_refusal(capability: AbstractCapability[Any]) -> str | None:
    from pydantic_ai.native_tools import AbstractNativeTool

    for tool in capability.get_native_tools():
        if not isinstance(tool, AbstractNativeTool):
            return "a function chooses its provider's tools in each run, so they can't be judged before it"
        if tool.kind not in PROVIDER_TOOLS:
            return f"the provider's tool `{tool.kind}` can't be judged; known are {', '.join(PROVIDER_TOOLS)}"
    return None


def admitted_of(spec: AgentSpec) -> tuple[Admitted, ...]:
    """Return the capabilities of an agent that has been linked or built."""
    return tuple(each for each in spec.capabilities if isinstance(each, Admitted))


def capability_names(spec: AgentSpec) -> list[str]:
    """List what the capabilities of an agent are called."""
    return [
        each.name if isinstance(each, Admitted | CapabilityRef) else type(each).__name__ for each in spec.capabilities
    ]


def give_capabilities(spec: AgentSpec, own: Mapping[str, type[Any]] | None) -> list[tuple[Any, CapabilityError]]:
    """Give an agent what its capabilities add, once: toolsets, and tools that its provider runs.

    Args:
        spec: The agent; its `capabilities` become `Admitted` ones.
        own: The classes that the project's Python files register, by name.

    Returns:
        The entries that it can't have, each with the reason.
    """
    faults: list[tuple[Any, CapabilityError]] = []
    given: list[Admitted] = [each for each in spec.capabilities if isinstance(each, Admitted)]
    for item in spec.capabilities:
        if isinstance(item, Admitted):
            continue
        try:
            ref = item if isinstance(item, CapabilityRef) else None
            made = item if ref is None else make_capability(ref, own or {})
            admitted = admit(made, ref and ref.name, ref and ref.place)
            for each in admitted:
                _check_single(each, [*given], spec)
                _add_tools(spec, each)
                given.append(each)
        except CapabilityError as fault:
            faults.append((item, fault))
        except Exception as error:  # noqa: BLE001 (its own code may raise anything)
            faults.append((item, CapabilityError("arguments", f"a capability raised {type(error).__name__}: {error}")))
    if spec.capabilities:
        spec.capabilities = tuple(given)
    return faults


def _check_single(one: Admitted, others: Sequence[Admitted], spec: AgentSpec) -> None:
    identity = one.capability.id
    if any(each.capability is one.capability or (identity and each.capability.id == identity) for each in others):
        message = f"the agent has the capability `{one.name}` twice"
        raise CapabilityError("duplicate", message, "remove one, or give it another `id`")
    known = {tool.tool_type for tool in spec.server_side_tools}
    for tool in _native(one.capability):
        if tool.kind in known:
            message = f"the agent has the provider's tool `{tool.kind}` already, so `{one.name}` can't add it"
            raise CapabilityError("duplicate", message, "keep one of the two")


def _add_tools(spec: AgentSpec, one: Admitted) -> None:
    place = cast("Any", one.place) or spec.place
    toolset: ToolsetDef | None = one.capability.get_toolset()
    if toolset is not None:
        spec.toolsets = (*spec.toolsets, ToolsetRef(one.name, place=place, value=toolset))
    added = [
        ServerSideTool(tool.kind, place=place, native=tool, capability=one.name) for tool in _native(one.capability)
    ]
    if added:
        spec.server_side_tools = (*spec.server_side_tools, *added)


def _native(capability: AbstractCapability[Any]) -> Iterator[Any]:
    yield from capability.get_native_tools()
