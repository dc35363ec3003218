"""Match the patterns of rules against hosts and URLs.

A pattern without a slash is about the host alone, whatever the port and path: `*.example.org`. One with a slash or a
port is about the URL: `https://api.example.org/v1/**`. In its path, `*` is within one segment and `**` any number of
them; behind a `?`, the patterns of the query's parameters follow, joined by `&`.

A rule that allows matches narrowly: the scheme and port if it has them, else http or https with its port; no
query if the pattern has none, else a query each of whose parameters one of the pattern's matches; and the path both as
it is written and as a server may read it. A rule that denies or asks matches broadly: either reading of the path, what
is below it, without regard to case, and whatever the pattern doesn't say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from llm_do.policy.urls.url import DEFAULT_PORTS, Url, normal_text, read_url, server_text
from llm_do.policy.values import Host
from llm_do.text.globs import Atom, Atoms, Glob, match_segments, split_atoms

__all__ = ["Segments", "UrlGlob", "without_end"]

_STAR = Atom("star")
_SOME = Glob((Atom("any"), _STAR))
_ANY = Glob((_STAR,))
_PORT = re.compile(r"[0-9]{1,5}|\*|")

Segments = tuple[Glob | None, ...]
"""The segments of a pattern's path; None stands for any number of them."""


@dataclass(frozen=True)
class UrlGlob:
    """A pattern of hosts, or of URLs.

    Args:
        host: The host.
        scheme: The scheme; None for any.
        port: The port as text, `*` for any; None for the one that the scheme has.
        path: The segments of the path as they are written, None for any number; None for a pattern of hosts.
        server_path: The same as a server may read them.
        query: The patterns of the query's parameters.
        fault: Why nothing can match, if the pattern is spelled as no URL ever is.
    """

    host: Glob
    scheme: Glob | None = None
    port: str | None = None
    path: Segments | None = None
    server_path: Segments = ()
    query: tuple[Glob, ...] = ()
    fault: str | None = None

    @classmethod
    def of(cls, atoms: Atoms) -> UrlGlob:
        """Build the pattern from atoms."""
        return _Reader(atoms).pattern()

    @cached_property
    def is_any_host(self) -> bool:
        """Whether it is about every host."""
        return self.host.is_star

    def allows(self, host: Host) -> bool:
        """Whether a rule with this pattern allows reaching a host, or a URL there."""
        if not self.host.matches(host, fold=True):
            return False
        if self.path is None:
            return True
        url = host.url
        if url is None or self.fault is not None or not self._has_port(url):
            return False
        if not (url.scheme in DEFAULT_PORTS if self.scheme is None else self.scheme.matches(url.scheme, fold=True)):
            return False
        if not all(any(glob.matches(each) for glob in self.query) for each in url.parameters):
            return False
        server = url.server_segments
        if server is None or not match_segments(_narrow(self.path), url.segments):
            return False
        return match_segments(_narrow(self.server_path), server)

    def touches(self, host: Host) -> bool:
        """Whether a rule with this pattern that denies or asks matches a host, or a URL there."""
        if not any(self.host.matches(spelling, fold=True) for spelling in _spellings(host)):
            return False
        url = host.url
        if self.path is None or url is None or self.fault is not None:
            return True
        if self.port not in (None, "*") and self.port != str(url.port):
            return False
        if self.query and not any(glob.matches(each, fold=True) for glob in self.query for each in _texts(url)):
            return False
        readings = [(self.path, url.segments)]
        readings += [(self.server_path, url.server_segments)] if url.server_segments is not None else []
        return url.server_segments is None or any(
            match_segments(without_end(pattern), segments, fold=True, below=True) for pattern, segments in readings
        )

    def _has_port(self, url: Url) -> bool:
        if self.port is None:
            return url.port == DEFAULT_PORTS.get(url.scheme)
        return self.port in ("*", str(url.port))


def _narrow(segments: Segments) -> Segments:
    """Return segments for a rule that allows: `*` isn't nothing, and `x/**` isn't `x`."""
    found = tuple(_SOME if glob is not None and glob.is_star else glob for glob in segments)
    return (*found[:-1], _ANY, None) if len(found) > 1 and found[-1] is None else found


def without_end(segments: Segments) -> Segments:
    """Return segments without a final slash, for a rule that denies or asks: it is about all that is in the folder."""
    return segments[:-1] if segments and segments[-1] is not None and segments[-1].literal == "" else segments


def _spellings(host: Host) -> Iterator[str]:
    """Yield a host, and with its internationalized labels decoded, as a rule may spell them."""
    yield host
    if "xn--" in host:
        try:
            yield host.encode("ascii").decode("idna")
        except UnicodeError:
            return


def _texts(url: Url) -> Iterator[str]:
    """Yield the parameters of a query, as they are and decoded; an empty text without any."""
    for each in url.parameters or ("",):
        yield each
        decoded = server_text(each)
        if decoded is not None:
            yield decoded


class _Reader:
    """Splits the atoms of a pattern at the characters that separate the parts of a URL."""

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = tuple(atom for atom in atoms if atom.kind != "void")
        self.text = "".join(map(_character, self.atoms))
        self.faults: list[str] = []

    def pattern(self) -> UrlGlob:
        scheme_end = self.text.find("://")
        start = scheme_end + 3 if scheme_end >= 0 else 0
        slash = self.text.find("/", start)
        end = slash if slash >= 0 else len(self.text)
        if scheme_end >= 0 and slash < 0 and "?" in self.text[start:]:
            end = self.text.index("?", start)
        authority, port = self._port(start, end)
        # `fe80:*` is about addresses: without a slash, only digits are a port.
        if scheme_end < 0 and slash < 0 and not (port or "").isdecimal():
            return UrlGlob(Glob(self.atoms), fault=_host_fault(self.atoms))
        query = next((at for at in range(end, len(self.atoms)) if self.text[at] == "?"), len(self.atoms))
        path, parameters = self.atoms[end:query], self.atoms[query + 1 :]
        if any(atom.kind == "char" and atom.text == "#" for atom in self.atoms):
            self.faults.append("what follows a `#` isn't sent, so that no URL is compared with it")
        segments = self._segments(path)
        return UrlGlob(
            self._host(authority),
            Glob(self.atoms[:scheme_end]) if scheme_end >= 0 else None,
            port,
            segments,
            self._server_segments(path),
            tuple(self._parameters(parameters)),
            next(iter(self.faults), None),
        )

    def _port(self, start: int, end: int) -> tuple[Atoms, str | None]:
        """Return the atoms of the host, and the text of the port."""
        text = self.text[start:end]
        colon = text.rfind(":")
        if colon < 0 or (text.count(":") > 1 and text[colon - 1] != "]") or "]" in text[colon:]:
            return self.atoms[start:end], None
        atoms = self.atoms[start + colon + 1 : end]
        port = "*" if atoms == (_STAR,) else text[colon + 1 :]
        if _PORT.fullmatch(port) is None:
            self.faults.append("a port is a number, or `*` for any")
        elif port.isdecimal():
            port = str(int(port))
        return self.atoms[start : start + colon], port or None

    def _host(self, authority: Atoms) -> Glob:
        """Return the glob of the host in a URL."""
        text = "".join(map(_character, authority))
        if not authority:
            self.faults.append("there is no host in front of the path")
        if any(atom.kind == "class" and ":" in atom.text for atom in authority):
            self.faults.append("brackets stand for one of several characters; quote an address: 'http://[::1]'/**")
        if (fault := _host_fault(authority)) is not None:
            self.faults.append(fault)
        if text.startswith("[") and text.endswith("]"):
            address = read_url(text)
            return (
                Glob(authority[1:-1]) if address is None else Glob(tuple(Atom("char", each) for each in address.host))
            )
        return Glob(authority[:-1] if text.endswith(".") else authority)

    def _segments(self, path: Atoms) -> Segments:
        written = self._normal(path)
        parts = [_segment(part) for part in split_atoms(written, "/", quoted=True)[1:]] or [Glob(())]
        if any(glob is not None and glob.literal in (".", "..") for glob in parts):
            self.faults.append("URLs are resolved before they are compared, so that none has `.` or `..` in its path")
        return tuple(parts)

    @staticmethod
    def _server_segments(path: Atoms) -> Segments:
        atoms: list[Atom] = []
        for is_char, group in groupby(path, lambda atom: atom.kind == "char"):
            run = tuple(group)
            text = server_text("".join(atom.text for atom in run)) if is_char else None
            atoms += run if text is None else [Atom("char", char) for char in text]
        parts = [_without_parameters(part) for part in split_atoms(tuple(atoms), "/", quoted=True)[1:]]
        kept = [part for part in parts[:-1] if Glob(part).literal != ""]
        return tuple(map(_segment, [*kept, *(parts[-1:] or [()])]))

    def _parameters(self, atoms: Atoms) -> Iterator[Glob]:
        literal = tuple(Atom("char", "?") if atom.kind == "any" else atom for atom in atoms)
        for part in split_atoms(literal, "&;", quoted=True):
            if part:
                yield Glob(_blanks(self._normal(part, in_query=True)))

    def _normal(self, atoms: Atoms, *, in_query: bool = False) -> Atoms:
        """Return atoms whose characters are in the spelling of `normal_text`."""
        found: list[Atom] = []
        for is_char, run in groupby(atoms, lambda atom: atom.kind == "char"):
            if not is_char:
                found += run
                continue
            text = normal_text("".join(atom.text for atom in run), in_query=in_query)
            if text is None:
                self.faults.append("a `%` isn't followed by the digits of a character")
            found += [Atom("char", char) for char in text or ""]
        return tuple(found)


def _character(atom: Atom) -> str:
    """Return the one character that stands for an atom; a `?` begins the query, also where it isn't quoted."""
    if atom.kind == "any":
        return "?"
    return atom.text if atom.kind == "char" else "\0"


def _host_fault(atoms: Atoms) -> str | None:
    """Say why no host can match a pattern of one."""
    text = "".join(atom.text if atom.kind == "char" else "*" for atom in atoms)
    if "@" in text:
        return "no rule is about a user name or a password in a URL"
    if text.isascii():
        return None
    try:
        spelled = text.encode("idna").decode("ascii")
    except UnicodeError:
        return "hosts are compared in their ASCII form"
    return f"hosts are compared in their ASCII form, {spelled}"


def _segment(atoms: Atoms) -> Glob | None:
    glob = Glob(atoms)
    return None if glob.is_star and len(glob.atoms) > 1 else glob


def _without_parameters(atoms: Atoms) -> Atoms:
    for at, atom in enumerate(atoms):
        if atom.kind == "char" and atom.text == ";":
            return atoms[:at]
    return atoms


def _blanks(atoms: Sequence[Atom]) -> Atoms:
    """Return atoms with one spelling of a blank."""
    return tuple(each for atom in atoms for each in (_BLANK if atom == Atom("char", "+") else (atom,)))


_BLANK = tuple(Atom("char", char) for char in "%20")
