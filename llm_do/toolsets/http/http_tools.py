"""The tools `http_get` and `http_request`, which are declared by their facts alone.

Rules, questions, proofs and durable runs know of a call what `HTTP` in `llm_do.project.tools.builtin_toolsets` says:
that its `url` is a URL. Here is what no rule can say: which addresses may be reached, and how much may come back.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Annotated, Any, Literal, NotRequired
from urllib.parse import quote, urljoin

from pydantic import AfterValidator, Field
from pydantic_ai import FunctionToolset, RunContext
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic reads only these before Python 3.12

from llm_do.errors import ToolError
from llm_do.formats.toolset_types.http_config import HttpConfig
from llm_do.project.tools.builtin_toolsets import HTTP
from llm_do.runtime.context.call_context import CallContext
from llm_do.runtime.toolcall.further_calls import is_allowed
from llm_do.runtime.tools.artifacts import save_artifact
from llm_do.runtime.tools.tool_output import limit_result
from llm_do.runtime.tools.traits import ToolTraits
from llm_do.text.sanitizer import sanitize
from llm_do.text.words import truncate_end
from llm_do.toolsets.function_tools import function_tool
from llm_do.toolsets.http.bodies import body_text
from llm_do.toolsets.http.exchange import Exchange, exchange
from llm_do.toolsets.http.targets import (
    LookUp,
    Target,
    addresses_of,
    check_number,
    look_up,
    read_target,
    secret_values,
    sent_headers,
)

__all__ = ["HttpResult", "HttpTools", "http_toolset"]

_MOST_REDIRECTS = 5
_LONGEST_BODY = 1_000_000
_SHOWN = 300
_SUCCESS = range(200, 300)


class HttpResult(TypedDict):
    """The response to a request.

    Args:
        status: The HTTP status.
        content_type: The media type of the body, as the server gives it.
        body: The body, if it is text.
        url: Where the response is from, if the request was redirected.
        location: Where a redirect leads that was not followed.
        note: What is missing in the body, or why a redirect was not followed.
    """

    status: int
    content_type: str
    body: str
    url: NotRequired[str]
    location: NotRequired[str]
    note: NotRequired[str]


def _valid_url(text: str) -> str:
    try:
        read_target(text)
    except ValueError as error:
        raise PydanticCustomError("request_url", "{reason}", {"reason": str(error)}) from error
    return text


_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?", re.ASCII)


def _valid_type(text: str) -> str:
    if _MEDIA_TYPE.fullmatch(text) is None:
        raise PydanticCustomError("media_type", "it isn't a media type such as application/json")
    return text


RequestUrl = Annotated[str, AfterValidator(_valid_url)]
ContentType = Annotated[str, AfterValidator(_valid_type)]
Method = Literal["POST", "PUT", "PATCH", "DELETE"]


class HttpTools:
    """The tools with one configuration; no call changes the object.

    Args:
        name: The toolset's name.
        config: The configuration.
        resolve: Returns the addresses of a host.
    """

    def __init__(self, name: str, config: HttpConfig, resolve: LookUp = look_up) -> None:
        self._name = name
        self._config = config
        self._resolve = resolve

    async def http_get(self, ctx: RunContext[CallContext], url: RequestUrl) -> HttpResult:
        """Get what is at a URL, by HTTP.

        Args:
            url: The URL, such as https://api.example.org/v1/users?page=2.
        """
        return await self._carry_out(ctx, "http_get", {"url": url})

    async def http_request(
        self,
        ctx: RunContext[CallContext],
        method: Method,
        url: RequestUrl,
        body: Annotated[str, Field(max_length=_LONGEST_BODY)] | None = None,
        content_type: ContentType = "application/json",
    ) -> HttpResult:
        """Send a request that changes something to a URL, by HTTP.

        Args:
            method: The method.
            url: The URL, such as https://api.example.org/v1/users.
            body: The body, as text.
            content_type: The media type of the body.
        """
        args = {"method": method, "url": url, "body": body, "content_type": content_type}
        return await self._carry_out(ctx, "http_request", args)

    def check(self, args: Mapping[str, Any]) -> None:
        """Raise `ToolError` for a URL that can't be requested, so that no one is asked about it."""
        self._target(str(args.get("url")))

    def _target(self, text: str) -> Target:
        try:
            target = read_target(text)
        except ValueError as error:
            raise ToolError(str(error)) from error
        if not target.is_below(self._config.base_url):
            raise ToolError(f"{_short(target.text)} isn't below {self._config.base_url}, where all requests have to go")
        check_number(target, self._config)
        return target

    async def _carry_out(self, ctx: RunContext[CallContext], tool: str, args: Mapping[str, Any]) -> HttpResult:
        """Send a request, follow redirects that policy allows, and return the response for the model."""
        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                found, target, note = await self._follow(ctx, tool, args)
        except TimeoutError:
            raise ToolError(f"{_short(str(args['url']))} gave no complete response in {seconds:g} s") from None
        return await self._result(ctx, args, found, target, note)

    async def _follow(
        self, ctx: RunContext[CallContext], tool: str, args: Mapping[str, Any]
    ) -> tuple[Exchange, Target, str]:
        target = self._target(args["url"])
        method, body = args.get("method", "GET"), args.get("body")
        left = _MOST_REDIRECTS
        while True:
            found = await self._send(ctx, method, target, body, args.get("content_type"))
            if found.location is None:
                return found, target, ""
            if not left:
                return found, target, f"more than {_MOST_REDIRECTS} redirects were not followed"
            if found.status == 303 or (found.status in (301, 302) and method == "POST"):
                method, body = "GET", None
            onward = self._onward(target, found.location)
            if isinstance(onward, str):
                return found, target, onward
            again = {**args, "url": onward.text} | ({"method": method, "body": body} if "method" in args else {})
            if not await is_allowed(ctx.deps, ctx.tool_name or tool, self.traits(tool), again):
                return found, target, "the redirect was not followed, since no rule allows it: request it by itself"
            target, left = onward, left - 1

    def _onward(self, target: Target, location: str) -> Target | str:
        """Return where a redirect leads, or why it isn't followed."""
        try:
            onward = read_target(urljoin(target.text, location))
        except ValueError:
            return "the redirect was not followed, since it leads to no URL that can be requested"
        before, after = target.url, onward.url
        secured = (before.scheme, before.port, after.scheme, after.port) == ("http", 80, "https", 443)
        if onward.host != target.host or not (secured or (before.scheme, before.port) == (after.scheme, after.port)):
            return "the redirect was not followed, since it leads to another host: request it by itself"
        if not onward.is_below(self._config.base_url):
            return f"the redirect was not followed, since it doesn't lead below {self._config.base_url}"
        return onward

    async def _send(
        self, ctx: RunContext[CallContext], method: str, target: Target, body: str | None, content_type: str | None
    ) -> Exchange:
        headers = sent_headers(self._config, ctx.deps.runtime.shared.variables())
        data = body.encode() if body is not None else None
        if data is not None and content_type is not None:
            headers["content-type"] = content_type
        addresses = await addresses_of(target, self._config, self._resolve)
        return await exchange(method, target, addresses, headers, data, most=self._config.max_bytes)

    async def _result(
        self, ctx: RunContext[CallContext], args: Mapping[str, Any], found: Exchange, target: Target, note: str
    ) -> HttpResult:
        text, missing = body_text(found)
        secrets = secret_values(self._config, ctx.deps.runtime.shared.variables())
        kind = _redacted(found.content_type, secrets)  # as it was sent: in lower case, no secret would be recognised
        kind = (kind if kind != found.content_type else kind.lower())[:_SHOWN]
        # The parts of the result stay apart if the body is too long; it is kept in a file.
        room = ctx.deps.runtime.config.settings.max_result_bytes * 3 // 4
        keep = partial(save_artifact, ctx.deps.project, f"{ctx.tool_name}-{ctx.tool_call_id}")
        body = (await limit_result(_redacted(text, secrets, cut=found.cut), room, keep)).for_model
        result = HttpResult(status=found.status, content_type=kind, body=str(body))
        if target.text != read_target(args["url"]).text:
            result["url"] = target.text
        if found.location is not None:
            result["location"] = _redacted(found.location, secrets)[:2_000]
        if note or missing:
            result["note"] = "; ".join(filter(None, (note, missing)))
        return result

    def traits(self, tool: str) -> ToolTraits:
        """Return the traits of a tool: its facts, and what a question says."""
        return ToolTraits(
            HTTP[tool], toolset=self._name, tool=tool, describe=_describe, check=self.check, succeeded=_succeeded
        )


def http_toolset(name: str, config: HttpConfig) -> FunctionToolset[Any]:
    """Build the toolset; it has no state, so runs may share it."""
    tools = HttpTools(name, config)
    functions: dict[str, Callable[..., Any]] = {"http_get": tools.http_get, "http_request": tools.http_request}
    built = [function_tool(function, tools.traits(each), each) for each, function in functions.items()]
    if config.base_url is not None:
        for tool in built:
            tool.description = f"{tool.description} URLs have to begin with {config.base_url}."
    return FunctionToolset(built, id=name)


def _redacted(text: str, secrets: Mapping[str, str], *, cut: bool = False) -> str:
    """Remove the secrets of the headers from what a server sends back, whose end may be missing."""
    for value, name in sorted(secrets.items(), key=lambda item: -len(item[0])):
        for form in _forms(value):
            text = text.replace(form, f"[redacted {name}]")
            shown = next((size for size in range(len(form) - 1, 3, -1) if cut and text.endswith(form[:size])), 0)
            text = f"{text[:-shown]}[redacted {name}]" if shown else text
    return text


def _forms(value: str) -> Sequence[str]:
    """The spellings in which servers repeat a text: in JSON, in HTML and in URLs."""
    data, encoded = json.dumps(value)[1:-1], (quote(value, safe=""), quote(value))
    lower = (re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), text) for text in encoded)
    return list(dict.fromkeys((value, data, data.replace("/", "\\/"), escape(value), *encoded, *lower)))


def _describe(args: Mapping[str, Any]) -> str:
    url = _short(str(args.get("url", "")))
    if "method" not in args:
        return f"Get {url}"
    body = args.get("body")
    sent = f" {len(str(body).encode()):,} bytes of {args.get('content_type')} to" if body is not None else ""
    return f"{args['method']}{sent} {url}"


def _short(text: str) -> str:
    return truncate_end(sanitize(text), _SHOWN)


def _succeeded(result: HttpResult) -> bool:
    return result["status"] in _SUCCESS
