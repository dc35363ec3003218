"""`Service`: projects behind HTTP, as an ASGI application: the page, its interface, and who may use them."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do._extras import missing_extra

try:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route
except ImportError as error:
    missing = missing_extra("service", "`llm_do.web.Service`")
    raise ModuleNotFoundError(f"{missing.message}. {missing.hint}", name=error.name) from error

from llm_do.errors import InputError, LlmDoError, StoreError, ThreadConflict, UsageError
from llm_do.project.project import Project
from llm_do.web.access import Access, problem
from llm_do.web.api import Api
from llm_do.web.chat_completions import ChatCompletions
from llm_do.web.page_file import content_policy, server_page
from llm_do.web.requests import BadRequestError
from llm_do.web.served_project import ServedProject, project_path

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["Service", "new_key"]

PAGES = ("/", "/compare", "/threads", "/runs/{run}")


class _PublicPages(frozenset[str]):
    """The paths of the page, which has no data in it."""

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and (path in PAGES or re.fullmatch(r"/runs/[^/]+", path) is not None)


class Service:
    """An ASGI application over projects.

    Args:
        projects: The projects; the first one is meant where a request names none.
        keys: Each key with the id of the user whose runs and threads it may use; None may use all. By default one key
            is made, which `key` has.
        hosts: Names besides this machine's that it is reached by.

    Raises:
        UsageError: There are no projects, or no keys.

    Example:
        >>> service = Service(Project.load("examples/greeter"), keys={"a secret": None})
        >>> service.key
        'a secret'
    """

    def __init__(
        self,
        projects: Project | Sequence[Project],
        *,
        keys: Mapping[str, str | None] | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        given = [projects] if isinstance(projects, Project) else list(projects)
        if not given:
            raise UsageError("a service needs a project", hint="Pass `Project.load(PATH)`.")
        keys = {new_key(): None} if keys is None else keys
        if not keys or not all(keys):
            raise UsageError("a service needs a key", hint="Leave `keys` out, and read `key`.")
        self.key = next(iter(keys))
        self.projects = _named(given)
        self._api = Api(self.projects)
        app = Starlette(
            routes=[
                *self._api.routes,
                *ChatCompletions(self.projects).routes,
                *(Route(path, _page) for path in PAGES),
            ],
            exception_handlers={
                LlmDoError: _refused,
                BadRequestError: _bad_request,
                404: _http_problem,
                405: _http_problem,
            },
            lifespan=self._lifespan,
        )
        self._app = Access(app, keys=keys, hosts=hosts, public=_PublicPages())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.aclose()

    def end_streams(self) -> None:
        """End the streams of events, which a server would otherwise wait for when it ends."""
        self._api.close()

    async def aclose(self) -> None:
        """End the runs that it has begun, and close the stores."""
        self.end_streams()
        for each in self.projects:
            await each.aclose()


def new_key() -> str:
    """Make a key."""
    return secrets.token_urlsafe(24)


def _named(projects: Sequence[Project]) -> list[ServedProject]:
    """Projects with names of their own, numbered where two have the same."""
    found: dict[str, ServedProject] = {}
    for project in projects:
        path = project_path(project)
        name, number = _name(path.resolve()) or "project", 2
        while (unique := name if name not in found else f"{name}-{number}") in found:
            number += 1
        found[unique] = ServedProject(project, unique)
    return list(found.values())


def _name(path: Path) -> str:
    """What a project is called: as its folder, or as its `.agent` file unless that is `main.agent`, as most are."""
    return path.stem if path.is_file() and path.stem != "main" else (path.parent if path.is_file() else path).name


async def _page(_: Request) -> Response:
    page, script, style = server_page()
    policy = f"{content_policy(script, style, connect=True)}; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, LlmDoError)
    if isinstance(error, ThreadConflict):
        status = 409
    elif isinstance(error, InputError | UsageError):
        status = 422
    else:
        status = 503 if isinstance(error, StoreError) else 500
    return problem(status, error.message, error.hint)


async def _bad_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequestError)
    return problem(error.status_code, error.message, error.hint, more=error.more)


async def _http_problem(_: Request, error: Any) -> Response:
    found = problem(error.status_code, "there is nothing here" if error.status_code == 404 else "not with this method")
    found.headers.update(error.headers or {})
    return found
