"""From a toolkit's functions to PydanticAI tools; a parameter `ctx` is passed the `ToolkitContext`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, cast

from pydantic_ai import RunContext, Tool as PydanticTool
from typing_extensions import get_type_hints

from llm_do.errors import ToolkitError
from llm_do.machines.context import Context
from llm_do.machines.tool_gate import OPEN_TRANSACTIONS
from llm_do.project.functions import context_deps
from llm_do.project.tools.tool_schemas import add_examples, tool_of
from llm_do.runtime.context.call_context import CallContext
from llm_do.tools import Tool, ToolOptions

__all__ = ["ToolkitContext", "toolkit_tool"]


@dataclass(repr=False, kw_only=True)
class ToolkitContext(RunContext[CallContext]):
    """The `ctx` of a toolkit's tool: PydanticAI's `RunContext` with the toolkit's context as `state`, and `call`."""

    state: Context
    """The context of this run; changes count once the tool has succeeded."""

    async def call(self, name: str, input: object, *, label: str = "") -> Any:
        """Call an agent, a flow or an exported function by name, as `CallContext.call` does."""
        return await self.deps.call(name, input, label=label)

    async def call_agent(self, name: str, input: object) -> Any:
        """The same as `call`."""
        return await self.deps.call(name, input)  # 0.3's name: see llm_do.compat


def toolkit_tool(name: str, item: Callable[..., Any] | Tool, options: ToolOptions) -> PydanticTool[Any]:
    """Make a toolkit's tool; it has to run inside a transaction of its gate."""
    if isinstance(item, Tool):
        description = options.description or item.description
        return PydanticTool.from_schema(item.execute, name, description, dict(item.parameters))
    try:
        made = tool_of(_with_context(item), name=name, description=options.description or None, takes_ctx=True)
    except ToolkitError:
        raise
    except Exception as error:
        raise ToolkitError(
            f"no schema can be made of the tool {name!r}: {error}",
            hint="annotate its parameters with types that JSON can express",
        ) from error
    made.description = add_examples(made.description, options.examples)
    return made


_RUN = "llm_do_run"
"""The parameter to which PydanticAI passes its `RunContext`: a name that no function of a project has."""


def _with_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first parameter is a `RunContext`; it passes the wrapped one a `ctx`, where that has one."""
    hints = _hints(function)
    parameters = list(inspect.signature(function).parameters.values())
    ctx = next((each for each in parameters if each.name == "ctx"), None)
    first = parameters[0] if parameters else None
    if ctx is None and first is not None and _is_run_context(hints.get(first.name)):
        ctx = first
    others = [each.replace(annotation=hints.get(each.name, each.annotation)) for each in parameters if each is not ctx]
    own = context_deps(function) == "own"
    leads = ctx is not None and ctx is first and ctx.kind is not inspect.Parameter.KEYWORD_ONLY
    name = ctx.name if ctx is not None else ""

    def arguments(run: RunContext[Any], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if not name:
            return args, named
        mine = _context(run, own=own)
        return ((mine, *args), named) if leads else (args, {**named, name: mine})

    async def wait(run: RunContext[Any], /, *args: Any, **named: Any) -> Any:
        positional, keywords = arguments(run, args, named)
        return await function(*positional, **keywords)

    def work(run: RunContext[Any], /, *args: Any, **named: Any) -> Any:
        positional, keywords = arguments(run, args, named)
        return function(*positional, **keywords)

    shim: Any = wait if inspect.iscoroutinefunction(function) else work
    run = inspect.Parameter(_RUN, inspect.Parameter.POSITIONAL_ONLY, annotation=RunContext[Any])
    functools.update_wrapper(shim, function, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    # PydanticAI would look through it and see the parameters that it hides.
    del shim.__wrapped__
    shim.__signature__ = inspect.Signature([run, *others])
    shim.__annotations__ = {
        _RUN: RunContext[Any],
        **{each.name: hints[each.name] for each in others if each.name in hints},
    }
    return shim


def _context(run: RunContext[Any], *, own: bool) -> ToolkitContext:
    """The `ctx` of a tool; `own` if it is annotated with other dependencies than the `CallContext`."""
    transactions = OPEN_TRANSACTIONS.get()
    if not transactions:
        raise ToolkitError("a toolkit's tool was called without its toolkit", hint="Call it through an agent.")
    made = object.__new__(ToolkitContext)
    made.__dict__.update(run.__dict__)
    made.state = transactions[-1].context
    if own and isinstance(run.deps, CallContext) and run.deps.deps is not None:
        made.deps = run.deps.deps
    return made


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, except `ctx`, which may be annotated with anything or nothing."""
    plain: object = inspect.unwrap(function)
    while isinstance(plain, functools.partial):
        plain = cast("functools.partial[Any]", plain).func
    if isinstance(plain, MethodType):
        plain = plain.__func__
    if not isinstance(plain, FunctionType):
        raise ToolkitError(f"{function!r} is not a function", hint="Add a function or a Tool object.")
    bare = FunctionType((lambda: None).__code__, plain.__globals__)
    bare.__annotations__ = {key: hint for key, hint in plain.__annotations__.items() if key not in ("ctx", "return")}
    try:
        return get_type_hints(bare, include_extras=True)
    except NameError as error:
        raise ToolkitError(
            f"the types of {plain.__qualname__}'s parameters can't be read: {error}",
            hint="Import them where the module can see them, outside `if TYPE_CHECKING`.",
        ) from error


def _is_run_context(hint: object) -> bool:
    origin = getattr(hint, "__origin__", hint)
    return isinstance(origin, type) and issubclass(origin, RunContext)
