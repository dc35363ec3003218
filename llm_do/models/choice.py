"""The choice of an agent's model among everything that names one, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from llm_do._extras import install_command
from llm_do._startup.frozen import frozen
from llm_do._startup.option_names import option_name
from llm_do.errors import ModelUnavailableError
from llm_do.models.aliases import Aliases, resolve_aliases
from llm_do.models.providers.model_names import (
    DEFAULT_MODELS,
    PROVIDERS,
    ModelOverride,
    anchor_path,
    available_keys,
    default_model,
)
from llm_do.models.user_config import load_user_config
from llm_do.text.globs import matches_any

__all__ = ["Choice", "Origin", "choose_model"]

Origin = Literal["override", "agent", "environment", "manifest", "user", "key", "local"]
"""Where a model's name was set: `user` is the person's configuration, `key` and `local` are the choices without one."""


@frozen
class Choice:
    """The models that an agent uses, at least one, in the order they are tried."""

    names: tuple[str, ...]
    origin: Origin


def choose_model(
    agent: str,
    declared: str | Sequence[str] | None = None,
    *,
    environ: Mapping[str, str],
    override: ModelOverride | None = None,
    manifest: str | Sequence[str] | None = None,
    compatible: Sequence[str] = (),
    local_available: Callable[[], bool] = lambda: False,
    file: str | None = None,
    root: Path | None = None,
    aliases: Aliases | None = None,
) -> Choice:
    """Decide which model an agent uses.

    The first of these that names one wins: the caller's override, the agent, `LLM_DO_MODEL`, the manifest, the person's
    configuration. Any of them may use the project's `aliases`, or the person's own. Without any, it is the default
    model of a provider whose key is set, or `local` if it is available and no key is set.

    Example:
        >>> choose_model("main", environ={"LLM_DO_MODEL": "openai:gpt-5"}, manifest="test")
        Choice(names=('openai:gpt-5',), origin='environment')
    """
    named: tuple[tuple[Origin, str | Sequence[str] | None], ...] = (
        ("override", (override or ModelOverride()).of(agent)),
        ("agent", declared),
        ("environment", environ.get("LLM_DO_MODEL")),
        ("manifest", manifest),
    )
    folder = root
    chosen = next((Choice(_as_tuple(value), origin) for origin, value in named if value), None)
    if chosen is None and (config := load_user_config()).model:
        chosen, folder = Choice(config.model, "user"), config.file.parent if config.file is not None else root
    if chosen is None:
        name = default_model(environ, compatible)
        if name is not None:
            return Choice((name,), "key")
        if available_keys(environ) or not local_available():
            raise _no_model_error(agent, environ, file, local_available=local_available)
        chosen = Choice(("local",), "local")
    names = chosen.names
    if folder is not None and chosen.origin in ("agent", "manifest", "user"):
        names = tuple(anchor_path(name, folder) for name in names)
    names = resolve_aliases(names, aliases, root)
    for name in names:
        _check_compatible(agent, name, compatible, file)
    return Choice(names, chosen.origin)


def _as_tuple(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _check_compatible(agent: str, name: str, globs: Sequence[str], file: str | None) -> None:
    if globs and not matches_any(name.lower(), map(str.lower, globs)):
        how = option_name(f"`--model {agent}=MODEL`", f"`models={{{agent!r}: MODEL}}`")
        raise ModelUnavailableError(
            f"agent {agent!r} is not compatible with the model {name!r}, only with {', '.join(globs)}",
            hint=f"name another with {how}, or change `compatible_models`",
            file=file,
        )


def _no_model_error(
    agent: str, environ: Mapping[str, str], file: str | None, *, local_available: Callable[[], bool]
) -> ModelUnavailableError:
    keys = available_keys(environ)
    local = option_name("`--model local`", "`model='local'`") + " runs the local model"
    if not local_available():
        local = f"`{install_command('local')}` and `llm-do models pull` install the model `local`"
    found = f" ({', '.join(keys)} is set, so its provider's models are available)" if keys else ""
    moved = _moved_provider(environ)
    if moved is not None:
        variable, name = moved
        names = " and ".join([*keys, variable])
        found = f" ({names} {'are' if keys else 'is'} set; a model of that server is named `{name}`)"
    first = "name one with" if keys or moved else "set a provider's key, such as OPENAI_API_KEY, or name a model with"
    model = option_name("`--model PROVIDER:NAME`", "`model='PROVIDER:NAME'`")
    return ModelUnavailableError(
        f"agent {agent!r} has no model",
        hint=f"{first} {model}, in `model` of the agent's file, the manifest or your "
        f"config.toml, or in LLM_DO_MODEL{found}; {local}",
        file=file,
    )


def _moved_provider(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that gives a provider with a default model an address of its own, and how its models are named."""
    for prefix in DEFAULT_MODELS:
        info = PROVIDERS[prefix]
        if info.base_url is not None and environ.get(info.base_url):
            # Servers that speak OpenAI's protocol have its chat completions; few have the Responses API.
            return info.base_url, "openai-chat:NAME" if prefix == "openai" else f"{prefix}:NAME"
    return None
