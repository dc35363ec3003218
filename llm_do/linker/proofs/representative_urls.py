"""URLs that stand for all others: one for each way in which a set of patterns can match.

The parts of a URL are independent: origins, paths and queries between which no pattern tells are the same for all of
them, so that one of each kind is combined with one of each other kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TypeVar

from llm_do.linker.proofs.representatives import TooManyError, host_texts, parameter_texts, segment_paths
from llm_do.policy.pattern import ArgumentPattern
from llm_do.policy.urls.url import DEFAULT_PORTS, Url, normal_text, read_url
from llm_do.policy.urls.url_pattern import UrlGlob, without_end
from llm_do.policy.values import Host
from llm_do.text.globs import Atom, Glob

__all__ = ["representative_urls"]

_MOST = 4_000
"""The most URLs to compare with the patterns."""

_ANY = Glob((Atom("star"),))
_OTHER_PORTS = (8080, 8081)
_PLAIN = Url("https", 443)

_Value = TypeVar("_Value")
_Vector = tuple[bool, ...]


def representative_urls(patterns: Iterable[ArgumentPattern]) -> tuple[str, ...]:
    """Return a URL, or a host alone, for each way in which the patterns can match one.

    Raises:
        TooManyError: There are too many ways.

    Example:
        >>> from llm_do.policy.pattern import parse_pattern
        >>> found = [parse_pattern(text).primary for text in ("net(a.org)", "net(https://a.org/x/**)")]
        >>> texts = representative_urls(found)
        >>> "a.org" in texts, any(text.startswith("https://a.org/x/") for text in texts)
        (True, True)
    """
    return _urls(tuple(dict.fromkeys(pattern.url for pattern in patterns)))


@lru_cache(maxsize=256)
def _urls(globs: tuple[UrlGlob, ...]) -> tuple[str, ...]:
    texts = host_texts(tuple(dict.fromkeys(glob.host for glob in globs)))
    if all(glob.path is None for glob in globs):
        return texts
    hosts = (Host(text) for text in texts if (read := read_url(text)) is not None and read.host == text)
    found: dict[_Vector, str] = {}
    for host in _different(hosts, globs, lambda host: host):
        here = [glob for glob in globs if glob.path is not None and glob.touches(host)]
        found.setdefault(_vector(globs, host), str(host))
        for url in _different_urls(host, here):
            found.setdefault(_vector(globs, Host(host, url)), url.text(host))
    return tuple(dict.fromkeys(found.values()))


def _different_urls(host: Host, globs: Sequence[UrlGlob]) -> Iterator[Url]:
    """Yield the URLs of a host between which patterns can tell."""
    if not globs:
        yield _PLAIN
        return
    anywhere = [replace(glob, path=(None,), server_path=(None,)) for glob in globs]
    origins = _different(
        _origins(globs), [replace(glob, query=(_ANY,)) for glob in anywhere], lambda url: Host(host, url)
    )
    loose = [replace(glob, scheme=None, port="*") for glob in globs]
    paths = _different(
        _paths(globs),
        [replace(glob, query=(_ANY,)) for glob in loose],
        lambda path: Host(host, replace(_PLAIN, path=path)),
    )
    queries = _different(
        _queries(globs),
        [replace(glob, scheme=None, port="*") for glob in anywhere],
        lambda query: Host(host, replace(_PLAIN, query=query)),
    )
    if len(origins) * len(paths) * len(queries) > _MOST:
        raise TooManyError
    for origin, path, query in product(origins, paths, queries):
        yield replace(origin, path=path, query=query)


def _different(values: Iterable[_Value], globs: Sequence[UrlGlob], host: Callable[[_Value], Host]) -> list[_Value]:
    """Return one value for each way in which patterns match."""
    found: dict[_Vector, _Value] = {}
    for value in values:
        found.setdefault(_vector(globs, host(value)), value)
    return list(found.values())


def _vector(globs: Sequence[UrlGlob], host: Host) -> _Vector:
    return tuple(each for glob in globs for each in (glob.allows(host), glob.touches(host)))


def _origins(globs: Sequence[UrlGlob]) -> Iterator[Url]:
    """Yield schemes and ports: those that patterns spell, and others."""
    schemes = dict.fromkeys(["https", "http", *(glob.scheme.sample.lower() for glob in globs if glob.scheme), "ftp"])
    ports = [int(glob.port) for glob in globs if glob.port not in (None, "*")]
    for scheme in schemes:
        for port in dict.fromkeys([DEFAULT_PORTS.get(scheme), *ports, *_OTHER_PORTS]):
            yield Url(scheme, port)


def _paths(globs: Sequence[UrlGlob]) -> Iterator[str]:
    """Yield paths, also those of folders, and with an empty segment."""
    written = [path for glob in globs for path in (glob.path, glob.server_path) if path is not None]
    patterns = [form for path in written for form in (path, without_end(path))]
    for path in segment_paths(tuple(dict.fromkeys(patterns))):
        name = normal_text("" if path == "." else path)
        if name is not None:
            yield f"/{name}"
            yield f"/{name}/"
            yield f"//{name}"


def _queries(globs: Sequence[UrlGlob]) -> Iterator[str | None]:
    """Yield queries: none, and with one parameter. Another parameter only makes a decision stricter."""
    yield None
    for text in parameter_texts(tuple(dict.fromkeys(part for glob in globs for part in glob.query))):
        query = normal_text(text, in_query=True)
        if query:
            yield query
