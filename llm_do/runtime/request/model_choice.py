"""Which model an agent uses: the one set by the session, its thread, its file or the project, in this order.

The order itself is `llm_do.models.choice.choose_model`, and aliases are resolved in `llm_do.models.aliases`; building
the model is the session's pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic_ai.models import Model

from llm_do._startup.option_names import option_name
from llm_do.errors import ModelUnavailableError
from llm_do.models.aliases import resolve_aliases
from llm_do.models.catalog import is_local_available
from llm_do.models.choice import choose_model
from llm_do.models.composites import ModelList
from llm_do.models.providers.model_names import PROVIDERS, ModelOverride, anchor_path, split_name
from llm_do.runtime.request.model_request import EngineModel

if TYPE_CHECKING:
    from llm_do.project.agent_spec import AgentSpec
    from llm_do.runtime.context.built_agent import BuiltAgent
    from llm_do.runtime.context.session import Session

__all__ = ["model_for", "named_model"]


def model_for(
    session: Session,
    built: BuiltAgent,
    of_thread: str | Sequence[str] | None = None,
    thread_id: str | None = None,
) -> Model:
    """An agent's model, wrapped so that its requests pass through the run."""
    spec, config = built.spec, session.config
    own = of_thread or spec.model
    if (stand_in := _stand_in(session, spec, own)) is not None:
        return stand_in
    of_agent = config.models.get(spec.name)
    model = next((each for each in (of_agent, None if of_agent else config.model) if isinstance(each, Model)), own)
    if isinstance(model, Model):
        return EngineModel(model)
    override = ModelOverride(_as_names(config.model), config.named_models)
    try:
        return _by_name(session, built, model, override)
    except ModelUnavailableError as error:
        if not of_thread or override.of(spec.name):
            raise
        change = "change the thread's setting: llm-do threads set THREAD model=PROVIDER:NAME"
        raise ModelUnavailableError(
            f"the model that the thread {thread_id!r} is set to isn't available: {error.message}",
            hint=f"{error.hint}; or {change}" if error.hint else change,
        ) from error


def named_model(session: Session, name: str, agent: str) -> Model:
    """A model that an agent uses in addition to its own, by name."""
    transport, project = session.config.transport, session.project
    names = resolve_aliases(name, project.model_aliases, project.root)
    stand_in = transport.stand_in(agent, names) if transport is not None else ()
    if not stand_in:
        return session.pool.get(names, agent=agent)
    session.pool.adopt(*stand_in[0])
    return stand_in[0][0]


def _stand_in(session: Session, spec: AgentSpec, own: str | Sequence[str] | Model | None) -> Model | None:
    """The model that the session's transport uses instead of an agent's own; the environment has no say in it."""
    config, project = session.config, session.project
    if config.transport is None:
        return None
    of_caller = config.models.get(spec.name) or config.model
    chosen = of_caller or own or project.model
    names = (chosen.model_id,) if isinstance(chosen, Model) else _as_names(chosen)
    if of_caller is None and names is not None:
        names = tuple(anchor_path(name, project.root) for name in names)
    if names is not None and not isinstance(chosen, Model):
        names = resolve_aliases(names, project.model_aliases, project.root)
    found = config.transport.stand_in(spec.name, names)
    if not found:
        return None
    models = [model for model, _ in found]
    if not isinstance(chosen, Model):
        for model, name in found:
            session.pool.adopt(model, name)
    return EngineModel(models[0] if len(models) == 1 else ModelList(*models), [name for _, name in found])


def _by_name(
    session: Session, built: BuiltAgent, model: str | Sequence[str] | None, override: ModelOverride
) -> EngineModel:
    spec, config, project = built.spec, session.config, session.project
    file = spec.place.file if spec.place else None
    choice = choose_model(
        spec.name,
        model,
        environ=session.pool.environment,
        override=override,
        manifest=None if isinstance(project.model, Model) else project.model,
        compatible=spec.compatible_models,
        local_available=is_local_available,
        file=file,
        root=project.root,
        aliases=project.model_aliases,
    )
    if choice.origin == "local":
        config.notice("no model is named and no key is set: using the local model")
    elif choice.origin == "key":
        keys = PROVIDERS[split_name(choice.names[0])[0]].keys
        key = next((key for key in keys if session.pool.environment.get(key)), keys[0])
        how = option_name("--model")
        config.notice(f"no model is named: using {choice.names[0]}, as {key} is set; name another with {how}")
    found = session.pool.get(choice.names, agent=spec.name, file=file, settings=built.settings)
    return EngineModel(found, choice.names)


def _as_names(model: str | Sequence[str] | Model | None) -> tuple[str, ...] | None:
    """The names of a model or a list; None if nothing is named."""
    if not model or isinstance(model, Model):
        return None
    return (model,) if isinstance(model, str) else tuple(model)
