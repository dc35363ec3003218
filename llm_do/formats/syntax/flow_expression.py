"""Flow expressions, `a >> (b | c) >> d`: the tree of a flow's steps, parsing an expression, formatting a tree.

Conditional and repeated steps are part of the tree, but expressions have no notation for them:
`llm_do.formats.parts.flow_steps` reads them.

The linker resolves the names, `llm_do.flows` runs the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from llm_do._startup.frozen import frozen
from llm_do.diagnostics.codes import flows as problems
from llm_do.diagnostics.codes.code import Problem
from llm_do.formats.syntax.source import KeyPath, Node
from llm_do.text.words import with_count

__all__ = [
    "Choice",
    "Condition",
    "FlowSyntaxError",
    "FlowTree",
    "ForEach",
    "Parallel",
    "Reference",
    "Repeat",
    "Serial",
    "conditions_in",
    "format_flow",
    "names_in",
    "offset_in_json",
    "parse_flow",
    "parts_of",
    "series_of",
]

MAX_NESTING = 50
"""Deepest nesting of parentheses."""


@frozen
class Reference:
    """A step by its name. Its position in the expression is ignored when trees are compared.

    Args:
        name: Name of an agent, a function or a flow.
        start: Offset of its first character.
        keys: Where the expression is in the flow's declaration.
    """

    name: str
    start: int = field(default=0, compare=False)
    keys: KeyPath = field(default=("flow",), compare=False)


@frozen
class Serial:
    """Steps one after the other: the output of each is the input of the next."""

    steps: tuple[FlowTree, ...]


@frozen
class Parallel:
    """Members side by side: each gets the same input, their outputs are joined in this order."""

    members: tuple[FlowTree, ...]


@frozen
class Condition:
    """An expression about the output of the step before, which `llm_do.formats.syntax.condition` understands.

    Args:
        text: The expression.
        keys: Where it is in the flow's declaration.
    """

    text: str
    keys: KeyPath = field(default=(), compare=False)


@frozen
class Choice:
    """A step that depends on a condition. Without `other`, the input is passed on if the condition is false."""

    when: Condition
    then: FlowTree
    other: FlowTree | None = None


@frozen
class ForEach:
    """A step that runs for each item of a list, and whose outputs are joined in the order of the items.

    Args:
        items: Which list.
        body: What runs for each item.
        concurrency: The most items worked on at once.
        on_error: Whether a failing item cancels the others, or they finish.
        at_most: The most items that the list may have.
    """

    items: Condition
    body: FlowTree
    concurrency: int
    on_error: Literal["cancel", "collect"]
    at_most: int


@frozen
class Repeat:
    """Steps that run again, each time with their last output, until a condition is true.

    Args:
        body: What is repeated.
        until: The condition on its output.
        at_most: The most repetitions.
    """

    body: FlowTree
    until: Condition
    at_most: int


FlowTree: TypeAlias = Reference | Serial | Parallel | Choice | ForEach | Repeat
"""A flow's steps."""


def parts_of(tree: FlowTree) -> tuple[FlowTree, ...]:
    """The parts directly inside a tree, in the order in which they are written."""
    if isinstance(tree, Serial):
        return tree.steps
    if isinstance(tree, Parallel):
        return tree.members
    if isinstance(tree, Choice):
        return (tree.then,) if tree.other is None else (tree.then, tree.other)
    return () if isinstance(tree, Reference) else (tree.body,)


class FlowSyntaxError(ValueError):
    """An expression that can't be read.

    Args:
        problem: What is wrong.
        start: Offset of the first character that is wrong.
        end: Offset after the last one.
        keys: Where the expression is in the flow's declaration.
    """

    def __init__(self, problem: Problem, start: int, end: int, keys: KeyPath = ("flow",)) -> None:
        super().__init__(problem.message)
        self.keys = keys
        self.problem = problem
        self.start = start
        self.end = end


def parse_flow(text: str, keys: KeyPath = ("flow",)) -> FlowTree:
    """Read an expression, which is at `keys` in the flow's declaration.

    Example:
        >>> format_flow(parse_flow("a>>(b|c)>>d"))
        'a >> (b | c) >> d'
        >>> try: parse_flow("a >> ")
        ... except FlowSyntaxError as error: print(error, error.start)
        a name is missing after `>>` 5
    """
    try:
        reader = _Reader(text, _tokens(text), keys)
        tree = reader.expression(0)
        left = reader.peek()
        if left.kind == ")":
            raise FlowSyntaxError(problems.unopened_group(), left.start, left.end)
        if left.kind != "end":
            raise _no_operator(left)
    except FlowSyntaxError as error:
        error.keys = keys
        raise
    return tree


def format_flow(tree: FlowTree) -> str:
    """Write a tree as an expression. `parse_flow` reads it back if no step is conditional or repeated.

    Example:
        >>> format_flow(Serial((Reference("a"), Parallel((Reference("b"), Reference("c"))))))
        'a >> (b | c)'
        >>> format_flow(Repeat(Reference("a"), Condition("output.done"), 3))
        'repeat a until output.done, at most 3 times'
    """
    if isinstance(tree, Reference):
        return tree.name
    if isinstance(tree, Choice):
        otherwise = f" else {_inside(tree.other)}" if tree.other is not None else ""
        return f"when {tree.when.text} then {_inside(tree.then)}{otherwise}"
    if isinstance(tree, ForEach):
        return f"for each of {tree.items.text} do {_inside(tree.body)}"
    if isinstance(tree, Repeat):
        return f"repeat {_inside(tree.body)} until {tree.until.text}, at most {with_count(tree.at_most, 'time')}"
    return (" >> " if isinstance(tree, Serial) else " | ").join(map(_inside, parts_of(tree)))


def _inside(tree: FlowTree) -> str:
    return format_flow(tree) if isinstance(tree, Reference) else f"({format_flow(tree)})"


def names_in(tree: FlowTree) -> Iterator[Reference]:
    """Every step of a tree, in the order in which they are written."""
    if isinstance(tree, Reference):
        yield tree
    for part in parts_of(tree):
        yield from names_in(part)


def conditions_in(tree: FlowTree) -> Iterator[Condition]:
    """Every condition of a tree, and every expression for a list."""
    if isinstance(tree, Choice):
        yield tree.when
    elif isinstance(tree, ForEach):
        yield tree.items
    elif isinstance(tree, Repeat):
        yield tree.until
    for part in parts_of(tree):
        yield from conditions_in(part)


def series_of(names: Sequence[str]) -> FlowTree:
    """The tree of a list of names: one after the other.

    Example:
        >>> format_flow(series_of(["a", "b"]))
        'a >> b'
    """
    steps = tuple(Reference(name) for name in names)
    return steps[0] if len(steps) == 1 else Serial(steps)


def offset_in_json(node: Node, offset: int) -> int:
    """The offset in a JSON file of a character of a string in it, escapes taken into account.

    Example:
        >>> from llm_do.formats.syntax.json_nodes import parse_json
        >>> node = parse_json(r'{"flow": "a \\u003e> b"}', "project.json").node.at(("flow",))
        >>> [offset_in_json(node, index) for index in (0, 2, 3)]
        [10, 12, 18]
    """
    text, at = node.source.text, node.start + 1
    if "\\" not in node.text:
        return min(at + offset, node.end - 1)
    for _ in range(offset):
        found = _CHARACTER.match(text, at)
        if found is None or found.end() >= node.end:
            break
        at = found.end()
    return at


_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)
_TOKEN = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<sign>>>|[|()])")
_WORD = re.compile(r"[^\s>|()]+|.", re.DOTALL)
_LONGEST_NAME = 64


@frozen
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + max(len(self.text), 1)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = _TOKEN.match(text, at)
        if found is None:
            raise _no_token(text, at)
        kind = "name" if found.lastgroup == "name" else found.group()
        if kind == "name" and len(found.group()) > _LONGEST_NAME:
            raise FlowSyntaxError(problems.long_step_name(_LONGEST_NAME), at, found.end())
        tokens.append(_Token(kind, found.group(), at))
        at = found.end()
    tokens.append(_Token("end", "", len(text.rstrip()) if text.strip() else 0))
    return tokens


def _no_token(text: str, at: int) -> FlowSyntaxError:
    found = _WORD.match(text, at)
    word = found.group() if found is not None else text[at]
    return FlowSyntaxError(problems.unknown_operator(word), at, at + len(word))


def _no_operator(token: _Token) -> FlowSyntaxError:
    return FlowSyntaxError(problems.missing_operator(token.text), token.start, token.end)


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str, tokens: list[_Token], keys: KeyPath) -> None:
        self.text = text
        self.keys = keys
        self.tokens = tokens
        self.at = 0

    def peek(self) -> _Token:
        return self.tokens[self.at]

    def take(self) -> _Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def expression(self, depth: int) -> FlowTree:
        """Parts joined by one operator; two different ones need parentheses."""
        parts = [self.part(depth)]
        sign = self.peek()
        while self.peek().kind in (">>", "|"):
            operator = self.take()
            if operator.kind != sign.kind:
                problem = problems.mixed_operators(sign.kind, operator.kind)
                raise FlowSyntaxError(problem, operator.start, operator.end)
            parts.append(self.part(depth))
        if len(parts) == 1:
            return parts[0]
        return Serial(tuple(parts)) if sign.kind == ">>" else Parallel(tuple(parts))

    def part(self, depth: int) -> FlowTree:
        token = self.peek()
        if token.kind == "name":
            self.take()
            return Reference(token.text, token.start, self.keys)
        if token.kind != "(":
            raise self._missing(token)
        self.take()
        if depth >= MAX_NESTING:
            raise FlowSyntaxError(problems.deep_groups(MAX_NESTING), token.start, token.end)
        closing = self.peek()
        if closing.kind == ")":
            raise FlowSyntaxError(problems.empty_group(), token.start, closing.end)
        inner = self.expression(depth + 1)
        closing = self.peek()
        if closing.kind == "end":
            raise FlowSyntaxError(problems.unclosed_group(), token.start, token.end)
        if closing.kind != ")":
            raise _no_operator(closing)
        self.take()
        return inner

    def _missing(self, token: _Token) -> FlowSyntaxError:
        if not self.text.strip():
            return FlowSyntaxError(problems.empty_expression(), 0, max(len(self.text), 1))
        if self.at == 0:
            return FlowSyntaxError(problems.missing_step(None, token.text), token.start, token.end)
        before = self.tokens[self.at - 1]
        start = len(self.text) if token.kind == "end" else token.start
        return FlowSyntaxError(problems.missing_step(before.text, token.text), start, max(token.end, start + 1))
