"""YAML to nodes, strictly: no duplicate keys, no tags, no merges, bounded aliases, and none of YAML 1.1's surprises.

A scalar without quotes means what it means in JSON; where YAML's versions disagree it becomes an `AmbiguousScalar`, so
that validation can suggest what to write instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: slower, the same events
    from yaml import SafeLoader as _Loader

from llm_do.diagnostics.codes import syntax as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.diagnostics.codes.files import deep_nesting, lone_surrogate, many_values
from llm_do.diagnostics.diagnostic import Diagnostic
from llm_do.formats.syntax.source import MAX_DEPTH, AmbiguousScalar, Node, NodeResult, Scalar, Source, text_fault
from llm_do.text.surrogates import has_surrogates
from llm_do.text.words import truncate_end

__all__ = ["parse_yaml", "plain_scalar"]

MAX_NODES = 50_000
"""Most values of one document; an alias counts as all the values that it repeats."""

MAX_ALIASES = 100

# Patterns that most files never need stay text: compiling them would cost every start more than all of its parsing.
_FORBIDDEN_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FORBIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
"""Control characters, those that only YAML 1.1 takes for a line break (U+0085, U+2028, U+2029), and non-characters."""
_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
    **{word: AmbiguousScalar(word, "null") for word in ("Null", "NULL")},
    **{word: AmbiguousScalar(word, "true") for word in ("True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")},
    **{word: AmbiguousScalar(word, "false") for word in ("False", "FALSE", "no", "No", "NO", "off", "Off", "OFF")},
    **{word: AmbiguousScalar(word, "not a number") for word in (".nan", ".NaN", ".NAN")},
    **{
        sign + word: AmbiguousScalar(sign + word, "infinity")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
}
_INTEGER = r"[-+]?(?:0|[1-9][0-9]*)"
_FLOAT = r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_AMBIGUOUS: tuple[tuple[str, str], ...] = (
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?", "a date"),
    (r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", "a number to the base of 60"),
    (r"[-+]?0x[0-9a-fA-F_]+", "a hexadecimal number"),
    (r"[-+]?0b[01_]+", "a binary number"),
    (r"[-+]?0o?[0-7_]+", "an octal number"),
    (r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "a number"),
)
_PROPERTIES = r"(?:[&!][^\s]*\s+)+"
_ENTRY = r"\s*(?:- +)?(?P<key>[^\s:#'\"\[\]{}][^:#'\"\[\]{}]*):[ \t]+(?P<value>\S.*)"


def plain_scalar(text: str) -> Scalar:
    """The value of a YAML scalar written without quotes.

    Example:
        >>> plain_scalar("true"), plain_scalar("1.5"), plain_scalar("gpt-5")
        (True, 1.5, 'gpt-5')
        >>> plain_scalar("no")
        AmbiguousScalar(text='no', meaning='false')
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    if re.fullmatch(_INTEGER, text):
        return int(text)
    if re.fullmatch(_FLOAT, text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise ValueError(text)
        return value
    for pattern, meaning in _AMBIGUOUS:
        if re.fullmatch(pattern, text):
            return AmbiguousScalar(text, meaning)
    return text


def parse_yaml(source: Source, start: int = 0, end: int | None = None) -> NodeResult:
    """Read one YAML document.

    Example:
        >>> result = parse_yaml(Source("a.agent", "name: no\\nname: yes\\n"))
        >>> [(item.code, item.line, item.column) for item in result.diagnostics]
        [('LD110', 2, 1)]
    """
    text = source.text[start:end]
    forbidden = _FORBIDDEN_ASCII if text.isascii() else re.compile(_FORBIDDEN)
    fault = text_fault(source, forbidden, start, end)
    if fault is not None:
        return NodeResult(None, (fault,))
    composer = _Composer(source, text, start)
    try:
        node = composer.document()
    except _Stop as stop:
        node = None
        composer.diagnostics.append(stop.diagnostic)
    except yaml.YAMLError as error:
        node = None
        composer.diagnostics.append(_syntax(error, source, start))
    except (ValueError, OverflowError) as error:  # an escape that names no character, in PyYAML's own scanner
        node = None
        composer.diagnostics.append(problems.unreadable_yaml(str(error)).at(source.place(start)))
    return NodeResult(node, tuple(composer.diagnostics), composer.ambiguous)


class _Stop(Exception):  # noqa: N818 (not an error: the way out of a document that can't be read on)
    def __init__(self, found: Diagnostic) -> None:
        super().__init__(found.message)
        self.diagnostic = found


_ALIAS: type[object] = yaml.AliasEvent
_SCALAR: type[object] = yaml.ScalarEvent
_MAPPING_START: type[object] = yaml.MappingStartEvent
_MAPPING_END: type[object] = yaml.MappingEndEvent
_SEQUENCE_END: type[object] = yaml.SequenceEndEvent
_STREAM_END: type[object] = yaml.StreamEndEvent


class _Mark(Protocol):
    index: int


class _Event(Protocol):
    """What PyYAML, which has no types for it, gives for each part of a document."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None


class _Composer:
    """Builds nodes from the parser's events, one document."""

    def __init__(self, source: Source, text: str, base: int) -> None:
        self.source = source
        self.base = base
        loader: Any = _Loader(text)
        self.next: Callable[[], _Event] = loader.get_event
        self.diagnostics: list[Diagnostic] = []
        self.anchors: dict[str, tuple[Node, int] | None] = {}
        self.count = 0
        self.aliases = 0
        self.ambiguous = False

    def document(self) -> Node:
        self.next()  # the stream's start
        event = self.next()
        if type(event) is _STREAM_END:
            return Node(self.source, self.base, self.base, "mapping")
        node = self.node(self.next(), 0)
        self.next()  # the document's end
        event = self.next()
        if type(event) is not _STREAM_END:
            self.report(problems.second_document(), event)
        return node

    def diagnose(self, problem: Problem, event: _Event) -> Diagnostic:
        return problem.at(self.source.place(self.base + event.start_mark.index, self.base + event.end_mark.index))

    def report(self, problem: Problem, event: _Event) -> None:
        self.diagnostics.append(self.diagnose(problem, event))

    def stop(self, problem: Problem, event: _Event) -> _Stop:
        return _Stop(self.diagnose(problem, event))

    def node(self, event: _Event, depth: int) -> Node:
        kind = type(event)
        if kind is _ALIAS:
            return self.alias(event, depth)
        before = self.count
        self.count += 1
        if self.count > MAX_NODES:
            raise self.stop(many_values(MAX_NODES), event)
        if depth >= MAX_DEPTH and kind is not _SCALAR:
            raise self.stop(deep_nesting("mappings", MAX_DEPTH), event)
        start = event.start_mark.index
        if event.anchor is not None or event.tag is not None:
            start = self.properties(event)
        if kind is _SCALAR:
            node = self.scalar(event, start)
        elif kind is _MAPPING_START:
            node = self.mapping(start, depth)
        else:
            node = self.sequence(start, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node, self.count - before
        return node

    def properties(self, event: _Event) -> int:
        """Remember an anchor, refuse a tag; return where the value after them starts."""
        start: int = event.start_mark.index
        if event.tag is not None:
            shown = truncate_end(event.tag.replace("tag:yaml.org,2002:", "!!"))
            self.report(problems.yaml_tag(shown), event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if not event.start_mark.index < event.end_mark.index:
            return start
        found = re.match(_PROPERTIES, self.source.text[self.base + start : self.base + event.end_mark.index])
        return start + found.end() if found is not None else start

    def scalar(self, event: _Event, start: int) -> Node:
        value: Scalar = event.value
        plain = not event.style
        end = event.end_mark.index
        if plain:
            try:
                value = plain_scalar(event.value)
            except ValueError:
                self.report(problems.huge_number(), event)
            if type(value) is AmbiguousScalar:
                self.ambiguous = True
        elif event.style == '"' and has_surrogates(event.value):
            self.report(lone_surrogate(), event)
            value = ""
        return Node(self.source, self.base + start, self.base + end, "scalar", value, plain)

    def sequence(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        event = self.next()
        while type(event) is not _SEQUENCE_END:
            items.append(self.node(event, depth + 1))
            event = self.next()
        end = self.base + event.end_mark.index
        if event.end_mark.index == event.start_mark.index and items:  # written as a block: it ends with its last item
            end = items[-1].end
        return Node(self.source, self.base + start, end, "sequence", items=items)

    def mapping(self, start: int, depth: int) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        node: Node | None = None
        event = self.next()
        while type(event) is not _MAPPING_END:
            key = self.key(event, depth)
            node = self.node(self.next(), depth + 1)
            if key is not None:
                if key in keys:
                    self.duplicate(key, keys[key], event)
                else:
                    entries[key] = node
                    keys[key] = self.base + event.start_mark.index, self.base + event.end_mark.index
            event = self.next()
        end = self.base + event.end_mark.index
        if event.end_mark.index == event.start_mark.index and node is not None:
            end = node.end
        return Node(self.source, self.base + start, end, "mapping", entries=entries, keys=keys)

    def key(self, event: _Event, depth: int) -> str | None:
        """A key's text, None for one that can't be a key."""
        if type(event) is not _SCALAR:
            self.report(problems.key_not_scalar(), event)
            if type(event) is not _ALIAS:
                self.node(event, depth + 1)
            return None
        if event.anchor is not None or event.tag is not None:
            self.properties(event)
            self.anchors.pop(event.anchor or "", None)
        text: str = event.value
        if event.style:
            if has_surrogates(text):
                self.report(lone_surrogate(), event)
                return None
            return text
        if text == "<<":
            self.report(problems.merge_key(), event)
            return None
        try:
            value = plain_scalar(text)
        except ValueError:
            value = 0
        if not isinstance(value, str):
            meaning = value.meaning if isinstance(value, AmbiguousScalar) else _meaning(value)
            self.report(problems.key_not_text(truncate_end(text), meaning, text), event)
        return text

    def duplicate(self, key: str, first: tuple[int, int], event: _Event) -> None:
        self.report(problems.duplicate_key(truncate_end(key), self.source.place(*first)), event)

    def alias(self, event: _Event, depth: int) -> Node:
        name = event.anchor or ""
        if name not in self.anchors:
            raise self.stop(problems.unknown_anchor(truncate_end(name)), event)
        found = self.anchors[name]
        if found is None:
            raise self.stop(problems.circular_alias(truncate_end(name)), event)
        node, size = found
        self.count += size
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self.stop(problems.many_aliases(MAX_ALIASES), event)
        if self.count > MAX_NODES:
            raise self.stop(problems.multiplied_aliases(MAX_NODES), event)
        if depth + _height(node) > MAX_DEPTH:
            raise self.stop(problems.deep_aliases(MAX_DEPTH), event)
        return node


def _height(root: Node) -> int:
    """How deep a tree is; shared parts are visited at most once for each depth."""
    height = -1
    level = {id(root): root}
    while level:
        height += 1
        below = [child for node in level.values() for child in (*node.entries.values(), *node.items)]
        level = {id(node): node for node in below}
    return height


def _meaning(value: Scalar) -> str:
    if value is None:
        return "nothing (null)"
    return f"the truth value {str(value).lower()}" if isinstance(value, bool) else "a number"


def _syntax(error: yaml.YAMLError, source: Source, base: int) -> Diagnostic:
    """The diagnostic of a parser error."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or "it can't be read"
    context = getattr(error, "context", None)
    offset = base + (mark.index if mark is not None else 0)
    reason = f"{problem} {context}" if context else problem
    return _explain(problem, reason, source, offset).at(source.place(offset))


def _explain(problem: str, reason: str, source: Source, offset: int) -> Problem:
    """What the parser found, with the fix where the line shows it."""
    line, _ = source.position(offset)
    start = source.line_start(line)
    text = source.line(line)
    if source.text[offset : offset + 1] == "\t":
        return problems.tab_indentation(reason)
    found = re.match(_ENTRY, text)
    if "mapping values" in problem or "cannot start any token" in problem or "expected" in problem:
        if found is not None and offset > start + found.start("value") - 1 and found["value"][0] not in "|>'\"[{&*!":
            quoted = json.dumps(found["value"].rstrip(), ensure_ascii=False)
            return problems.unquoted_value(reason, found["key"].strip(), quoted)
        before = source.text[start:offset]
        if "expected key" in problem and before and not before.strip():
            return problems.wrong_indentation(reason, more=False)
        if "mapping values" in problem and re.fullmatch(r" +[\w-]+", before):
            return problems.wrong_indentation(reason, more=True)
        if "mapping values" in problem:
            return problems.unquoted_colon(reason)
    return problems.invalid_yaml(reason, None)
