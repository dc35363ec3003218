"""`Access`: who may ask the server anything. It stands before every route, so that no route can forget it.

A request has one `Host` that is this machine's or an allowed name, which keeps out pages of other sites whose names
were pointed here. It has the key, or the cookie that the page got for it. A cookie is sent by the browser whoever asks,
so a write with one has to come from the page itself: its `Origin` has to be this server's own.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from llm_do.runtime.record.redaction import redact_data
from llm_do.web.requests import BadRequestError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LOGIN", "Access", "problem"]

LOGIN = "/api/session"
"""Where the page posts the key."""

MOST_BYTES = 2**20
"""The largest body of a request."""

_TOO_LARGE = f"the body is larger than {MOST_BYTES:,} bytes"

MOST_HEADERS = 16_384
"""Bytes of a request's headers."""

MOST_SESSIONS = 1000

_ONLY_ONCE = ("authorization", "origin", "content-type", "sec-fetch-site", "last-event-id")
"""Headers that a request can't have twice: a proxy and this server might each read a different one."""

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

LAST_WORDS = 1.0
"""Seconds that the end of an answer may take when the server ends."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_DEFAULT_POLICY = "default-src 'none'; frame-ancestors 'none'"


def problem(
    status: int,
    message: str,
    hint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
) -> JSONResponse:
    """Return an error as every route reports it, without secrets, with any more fields that it has."""
    error: dict[str, object] = {
        "message": message,
        "type": "invalid_request_error" if status < 500 else "server_error",
        **(more or {}),
    }
    if hint is not None:
        error["hint"] = hint
    return JSONResponse({"error": redact_data(error)}, status, headers)


class Access:
    """Lets through what has the key and comes from the right place.

    Args:
        app: The application.
        keys: Each key with the id of its user; None for the user of the command line.
        hosts: Names besides this machine's that `Host` may have.
        public: Paths that contain nothing, and need no key.
    """

    def __init__(
        self, app: ASGIApp, *, keys: Mapping[str, str | None], hosts: Collection[str] = (), public: Collection[str] = ()
    ) -> None:
        self._app = app
        self._keys = dict(keys)
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._public = public
        self._sessions: dict[str, str | None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # websockets aren't spoken
        request = Request(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = {name.lower() for name, _ in message["headers"]}
                more = {**_HEADERS, "Content-Security-Policy": _DEFAULT_POLICY}
                added = [(name.lower().encode(), text.encode()) for name, text in more.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in sent)]
            await send(message)

        progress = _Progress(guarded)
        with suppress(ClientDisconnect):  # it has gone away before its request was complete
            try:
                await self._answer(request, receive, progress.send)
            except asyncio.CancelledError:  # the server ends, and no longer waits for a run
                await asyncio.wait_for(progress.end(scope, receive), LAST_WORDS)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        scope = request.scope
        refusal = self._refuse(request)
        if refusal is None and request.method == "POST" and request.url.path == LOGIN:
            refusal = await self._log_in(Request(scope, _limited(receive)))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)

    def _refuse(self, request: Request) -> Response | None:
        """What is wrong with a request; sets the user of one that is accepted."""
        if sum(len(name) + len(text) for name, text in request.headers.raw) > MOST_HEADERS:
            return problem(431, f"the headers are larger than {MOST_HEADERS:,} bytes")
        host = self._host(request)
        if host is None:
            return problem(421, "this server doesn't answer for that Host", "Start it with --allow-host NAME.")
        twice = next((name for name in _ONLY_ONCE if len(request.headers.getlist(name)) > 1), None)
        if twice is not None:
            return problem(400, f"the request has the header {twice} twice")
        reads = request.method in ("GET", "HEAD")
        if reads and request.url.path in self._public:
            return None
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return problem(403, "another site's page asks")
        if request.url.path != LOGIN and not self._knows(request, host):
            hint = "Open the address that `llm-do serve` printed."
            return problem(401, "the key is missing or wrong", hint, headers={"WWW-Authenticate": "Bearer"})
        return None if reads else _refuse_write(request, host)

    def _knows(self, request: Request, host: str) -> bool:
        """Whether a request has a key or a session, whose user it is then a request of."""
        if "authorization" in request.headers:
            kind, _, key = request.headers["authorization"].partition(" ")
            known, user = self._user_of(key.strip()) if kind.lower() == "bearer" else (False, None)
        else:
            session = request.cookies.get(_cookie_name(host), "")
            known, user = session in self._sessions, self._sessions.get(session)
        request.scope["llm_do.user"] = user
        return known

    def _host(self, request: Request) -> str | None:
        """The `Host` of a request, in lower case, if it is the only one and allowed."""
        hosts = request.headers.getlist("host")
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if found is None or found[1].lower().rstrip(".") not in self._hosts:
            return None
        return hosts[0].lower()

    def _user_of(self, key: str) -> tuple[bool, str | None]:
        """Whether a key is known, and whose it is; takes as long for every key."""
        found: tuple[bool, str | None] = (False, None)
        for known, user in self._keys.items():
            if hmac.compare_digest(known.encode(), key.encode("utf-8", "replace")):
                found = (True, user)
        return found

    async def _log_in(self, request: Request) -> Response:
        """Give the page a cookie for the key."""
        try:
            data: Any = json.loads(await request.body())
        except BadRequestError as error:
            return problem(error.status_code, error.message)
        except (ValueError, RecursionError):
            data = None
        key = cast("dict[str, Any]", data).get("key") if isinstance(data, dict) else None
        known, user = self._user_of(key) if isinstance(key, str) else (False, None)
        host = self._host(request)
        if not known or host is None:
            return problem(401, "the key is wrong", "Open the address that `llm-do serve` printed.")
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        token = secrets.token_urlsafe(32)
        self._sessions[token] = user
        answer = Response(status_code=204)
        answer.set_cookie(_cookie_name(host), token, httponly=True, samesite="strict", path="/")
        return answer


class _Progress:
    """How far the answer to a request is.

    Args:
        send: Sends it.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = self._complete = False

    async def send(self, message: Message) -> None:
        """Send a part of it."""
        await self._send(message)
        self._begun = True
        self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def end(self, scope: Scope, receive: Receive) -> None:
        """Complete it."""
        if not self._begun:
            await problem(503, "the server is ending")(scope, receive, self._send)
        elif not self._complete:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _refuse_write(request: Request, host: str) -> Response | None:
    """What is wrong with a request that isn't only for reading."""
    headers = request.headers
    origin = headers.get("origin")
    uses_cookie = request.url.path == LOGIN or "authorization" not in headers
    if (uses_cookie or origin is not None) and origin not in (f"http://{host}", f"https://{host}"):
        return problem(403, "the request doesn't come from this server's own page: its Origin is another")
    if request.method == "POST" and not _is_json(headers.get("content-type", "")):
        return problem(415, "a request has to be application/json")
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdecimal():
        return problem(400, "the Content-Length is no number")
    return problem(413, _TOO_LARGE) if int(length[:20]) > MOST_BYTES else None


def _limited(receive: Receive) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > MOST_BYTES:
                raise BadRequestError(_TOO_LARGE, 413)
        return message

    return counted


def _cookie_name(host: str) -> str:
    """Cookies don't tell ports apart, and servers on several ports have keys of their own."""
    found = _HOST.fullmatch(host)
    return f"llm_do_{(found[2] if found is not None else None) or '80'}"


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
