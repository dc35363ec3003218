"""Parse the manifest's assertions: sentences about what a project can't do, in `permissions.assert`.

    never shell                                 no one calls the tool
    never web -> files.write(src/**)            nor through any chain of calls that begins with `web`
    never files.write(src/**) from web          the same
    never shell from generated agents           agents that `agent_create` writes
    never delete_file unless asked              only calls that a person is asked about
    deploy only after tests_passed              only once the state was reached, or the tool has succeeded

The last term of a chain is what is called: a pattern as in rules (`llm_do.policy.pattern`), or the name of an agent, a
flow, a function or a toolset. Whether an assertion holds is `llm_do.linker.proofs.assertion_proofs`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from llm_do._startup.frozen import frozen
from llm_do.policy.pattern import Pattern, PatternError, parse_pattern

__all__ = ["Assertion", "AssertionSyntaxError", "Never", "OnlyAfter", "Term", "parse_assertion"]

_FORMS = "write `never X`, `never X -> Y`, `never Y from X` (each also with `unless asked`) or `X only after STATE`"
_STATE = re.compile(r"[^\s()'\",]+")
_OTHER_ARROWS = ("=>", "→", "⟶", "-->")
_LONGEST = 1000


class AssertionSyntaxError(ValueError):
    """The text isn't an assertion: `start` and `end` are the offsets of the fault, `hint` says what to write."""

    def __init__(self, message: str, start: int, end: int, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.hint = hint


@frozen
class Term:
    """What an assertion is about: a pattern, or all generated agents; `start` and `end` are its offsets in the text."""

    text: str
    start: int
    end: int
    pattern: Pattern | None = None

    @property
    def generated(self) -> bool:
        """Whether it stands for the agents that `agent_create` writes."""
        return self.pattern is None

    @property
    def name(self) -> str | None:
        """The name that it consists of; None for a pattern with wildcards, arguments or an agent."""
        pattern = self.pattern
        if pattern is None or pattern.action is not None or pattern.primary is not None or pattern.named:
            return None
        return pattern.tool.literal if pattern.agent is None and pattern.agent_path is None else None


@frozen
class Never:
    """No chain of calls leads through the terms in their order; with `unless_asked`, but for calls that need a person.

    Example:
        >>> [term.text for term in parse_assertion("never web -> shell(git push *)").terms]
        ['web', 'shell(git push *)']
    """

    text: str
    terms: tuple[Term, ...]
    unless_asked: bool = False

    @property
    def target(self) -> Term:
        """What must not be called."""
        return self.terms[-1]

    @property
    def sources(self) -> tuple[Term, ...]:
        """What a chain begins with and leads through; empty for every chain."""
        return self.terms[:-1]


@frozen
class OnlyAfter:
    """A tool is called only after a state was reached, or another tool has succeeded.

    Example:
        >>> parse_assertion("deploy only after tests_passed").state
        'tests_passed'
    """

    text: str
    target: Term
    state: str
    state_start: int = field(default=0)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every term."""
        return (self.target,)


Assertion = Never | OnlyAfter


def parse_assertion(text: str) -> Assertion:
    """Parse the text of an assertion.

    Raises:
        AssertionSyntaxError: It isn't one.

    Example:
        >>> parse_assertion("never shell from generated agents").sources[0].generated
        True
    """
    if len(text) > _LONGEST:
        raise AssertionSyntaxError("the assertion is too long", 0, 1, f"write at most {_LONGEST} characters")
    return _Reader(text, _split(text)).assertion()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


def _split(text: str) -> list[_Word]:
    """Split a text at blanks and arrows that are outside quotes and parentheses."""
    words: list[_Word] = []
    at = start = depth = 0
    quote = ""
    while at <= len(text):
        char = text[at : at + 1]
        outside = not quote and depth == 0
        arrow = outside and text.startswith("->", at)
        if not char or (outside and char.isspace()) or arrow:
            if at > start:
                words.append(_Word(text[start:at], start, at))
            if arrow:
                words.append(_Word("->", at, at + 2))
            at += 2 if arrow else 1
            start = at
            continue
        if quote:
            if char == "\\" and quote == '"':
                at += 1
            elif char == quote:
                quote = ""
        elif char == "\\":
            at += 1
        elif char in "'\"":
            quote = char
        else:
            depth = max(depth + (char == "(") - (char == ")"), 0)
        at += 1
    if start < len(text):  # a quote or an escape that reaches over the end
        words.append(_Word(text[start:], start, len(text)))
    return words


class _Reader:
    """A parser of one assertion; `at` is the index of the next word."""

    def __init__(self, text: str, words: list[_Word]) -> None:
        self.text = text
        self.words = words
        self.at = 0

    def assertion(self) -> Assertion:
        """Read the whole text."""
        if not self.words:
            raise AssertionSyntaxError("the assertion is empty", 0, max(len(self.text), 1), _FORMS)
        if self.next_is("never"):
            return self.never()
        target = self.term()
        if not self.next_is("only", "after"):
            raise self.fail("it doesn't begin with `never`, and isn't `X only after STATE`", self.words[0])
        state = self.take()
        if state is None or not _STATE.fullmatch(state.text) or state.text == "->":
            raise self.fail("there is no state after `only after`", state, hint="write `X only after STATE`")
        self.finish()
        if state.text == target.text:
            raise self.fail("nothing can come only after itself", state, hint="name the state or tool that comes first")
        return OnlyAfter(self.text, target, state.text, state.start)

    def never(self) -> Never:
        """Read what follows `never`."""
        terms = [self.term()]
        while self.next_is("->"):
            terms.append(self.term())
        if self.next_is("from"):
            if len(terms) > 1:
                hint = "write `never X -> Y -> Z`, which begins with where it starts"
                raise self.fail("`from` can't follow an arrow", self.words[self.at - 1], hint=hint)
            terms.insert(0, self.term())
        unless = self.next_is("unless", "asked")
        self.finish()
        if terms[-1].generated:
            hint = "name a tool; for what they may do, write `never TOOL from generated agents`"
            raise AssertionSyntaxError("generated agents have no names to call", terms[-1].start, terms[-1].end, hint)
        return Never(self.text, tuple(terms), unless)

    def next_is(self, *words: str) -> bool:
        """Take the next words if they are these."""
        found = tuple(word.text for word in self.words[self.at : self.at + len(words)])
        if found != words:
            return False
        self.at += len(words)
        return True

    def take(self) -> _Word | None:
        """Take the next word."""
        word = self.words[self.at] if self.at < len(self.words) else None
        self.at += word is not None
        return word

    def term(self) -> Term:
        """Read a pattern, or `generated agents`."""
        start = self.words[self.at].start if self.at < len(self.words) else len(self.text)
        if self.next_is("generated", "agents"):
            return Term("generated agents", start, self.words[self.at - 1].end)
        word = self.take()
        if word is None or word.text in ("->", "never"):
            raise self.fail("a name or a pattern is missing", word, hint="name an agent, a tool or a toolset here")
        if word.text in _OTHER_ARROWS:
            raise self.fail(f"{word.text} is not an arrow", word, hint="write `->`")
        try:
            pattern = parse_pattern(word.text)
        except PatternError as error:
            at = min(word.start + error.column - 1, max(word.end - 1, word.start))
            raise AssertionSyntaxError(f"{word.text} can't be read: {error.message}", at, at + 1, error.hint) from None
        return Term(word.text, word.start, word.end, pattern)

    def finish(self) -> None:
        """Fail if anything is left."""
        if self.at == len(self.words):
            return
        word = self.words[self.at]
        hint = "write `->`" if word.text in _OTHER_ARROWS else _FORMS
        if word.text == "unless":
            hint = "the only exception is `unless asked`"
        raise self.fail(f"{word.text!r} is not expected here", word, hint=hint)

    def fail(self, message: str, word: _Word | None = None, *, hint: str = _FORMS) -> AssertionSyntaxError:
        """Return the error about a word; without one, about the next one or the end."""
        if word is None and self.at < len(self.words):
            word = self.words[self.at]
        start, end = (word.start, word.end) if word is not None else (max(len(self.text) - 1, 0), len(self.text))
        return AssertionSyntaxError(message, start, max(end, start + 1), hint)
