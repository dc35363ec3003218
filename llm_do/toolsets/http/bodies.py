"""The body of a response as text for a model, if it is text: by its media type, its encoding and its bytes."""

from __future__ import annotations

import codecs
import re

from llm_do.text.words import with_count
from llm_do.toolsets.http.exchange import Exchange

__all__ = ["body_text"]

_TEXTUAL = re.compile(
    r"text/.*|application/(?:.*\+)?(?:json|xml|yaml|toml)|application/(?:javascript|ecmascript|ndjson|x-ndjson|jsonl"
    r"|x-javascript|x-yaml|x-www-form-urlencoded|graphql|sql|x-sh|rtf|pgp-signature|problem\+json|mbox)|image/svg\+xml"
    r"|message/.*|multipart/.*|model/.*\+xml"
)
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream", "application/x-unknown", "unknown/unknown")
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._:-]+)")
_ENCODINGS = re.compile(
    r"utf-?8|utf-?16(?:-?[lb]e)?|us-ascii|ascii|iso-?8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|shift[_-]jis"
    r"|euc-(?:jp|kr)|gbk|gb2312|gb18030|big5",
    re.IGNORECASE,
)
"""Encodings of text; Python has others, which unpack or transform."""

_WIDE = re.compile(r"utf-?16", re.IGNORECASE)


def body_text(found: Exchange) -> tuple[str, str | None]:
    """Return the text of a body, and a note about what isn't in it.

    Example:
        >>> body_text(Exchange(200, "text/plain; charset=latin-1", None, b"caf\\xe9", False))
        ('café', None)
        >>> body_text(Exchange(200, "image/png", None, b"\\x89PNG\\0", False))
        ('', 'the body of 5 bytes (image/png) is not text')
    """
    content_type = found.content_type.lower()
    kind = content_type.partition(";")[0].strip()
    size = f"the first {with_count(len(found.body), 'byte')}" if found.cut else with_count(len(found.body), "byte")
    encoding = _encoding(content_type)
    is_text = _TEXTUAL.fullmatch(kind) is not None or kind in _UNKNOWN
    if not found.body:
        return "", "the body was not read to its end" if found.cut else None
    if not is_text or (b"\0" in found.body and _WIDE.fullmatch(encoding) is None):
        return "", f"the body of {size} ({kind or 'of unknown type'}) is not text"
    decoder = codecs.getincrementaldecoder(encoding)(errors="strict" if kind in _UNKNOWN else "replace")
    try:
        text = decoder.decode(found.body, final=not found.cut)
    except UnicodeDecodeError:
        return "", f"the body of {size} ({kind or 'of unknown type'}) is not text"
    return text, f"these are {size}; the rest was not read" if found.cut else None


def _encoding(content_type: str) -> str:
    """Return the encoding that a media type names; UTF-8 for none, and for one that isn't of text."""
    found = _CHARSET.search(content_type)
    if found is None or _ENCODINGS.fullmatch(found[1]) is None:
        return "utf-8"
    try:
        return codecs.lookup(found[1]).name
    except LookupError:
        return "utf-8"
