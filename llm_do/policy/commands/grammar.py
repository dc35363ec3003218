"""The grammar of known programs: what their options and operands are, and which are known to be harmless.

The tables in `llm_do.policy.commands.programs` have a block for each program or subcommand, with a line for each kind
of option:

    NAME, NAME: ROLE ROLE* ; ATTRIBUTE ...
        KIND -abc --option ...

A role says what an operand is; with `*` it may be repeated:

- `path`, `any` (may be a path), `ref` (a revision or a package, which may be one), `lines` (of a file),
  `local` (no other machine's), `refspec`, `url`, `text`, `none`;
- `made`: a file that a compiler makes; `name`: of something that is installed;
- `method`, `body`: what a request does at a URL, and sends there;
- `sed`, `awk`, `jq`, `sql`, `data`, `assign`, `format`, `processes`: a text that is harmless or not by its contents;
- `script`: a file that is executed; `launch`: another command, which has a block of its own; `write`: a file that is
  written.

A kind says what an option's value is: `flags` have none, `maybe` an optional one in the same word; otherwise it is a
role, `pair` and `pair-path` (two words), or `choice OPTION REGEX`. `follow` are flags that make the program follow
links (unless a `nofollow` option is present), `first` options that take the place of the first operand; `use` includes
the options of other blocks.

The attribute `reads` says that a program with these words only reads. A `bare` one does without operands or with an
option in `lists`, and without one in `changes`; a `listing` one is harmless only then. `words` are programs without
options; the options of a `single` one begin with one dash. With `digits`, `-3` is an option; with `bundled`, the first
word may be options; with `plus`, words may begin with `+`; with `response`, `@FILE` contains further words. `dashed`
names the block for the words after `--`; `sub` allows subcommands.

An option that isn't listed isn't known to be harmless, whatever it is called. Programs without a block are decided by
the names and values of their options (`llm_do.policy.commands.unknown_programs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from llm_do.policy.commands.programs import development, git, launchers, services, text_programs

__all__ = ["Grammar", "find_grammar", "is_known", "known_programs", "reading_programs"]

_VERSIONED = re.compile(r"(python|pypy|pip|pytest)[-0-9.]+")


@dataclass
class Grammar:
    """The grammar of one program or subcommand."""

    name: str
    roles: tuple[str, ...] = ("any*",)
    attributes: frozenset[str] = frozenset()
    options: dict[str, str | re.Pattern[str]] = field(default_factory=dict[str, "str | re.Pattern[str]"])
    """The kind of each option, or the expression that its value has to match."""
    groups: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The options in `changes`, `first`, `lists` and `nofollow`."""
    dashed: str | None = None
    """The block for the words after `--`."""

    def role(self, number: int) -> str:
        """Return the role of an operand by its number."""
        last = self.roles[-1]
        if number < len(self.roles):
            return self.roles[number].removesuffix("*")
        return last.removesuffix("*") if last.endswith("*") else "unknown"


def is_known(program: str) -> bool:
    """Whether there is a grammar for a program."""
    return program in known_programs()


@cache
def known_programs() -> dict[str, tuple[str, list[str]]]:
    """Return the header and the lines of each block, by the names of programs and subcommands."""
    found: dict[str, tuple[str, list[str]]] = {}
    lines: list[str] = []
    for module in (text_programs, git, development, services, launchers):
        for line in module.TABLE.strip().splitlines():
            if line.startswith(" "):
                lines.append(line.strip())
            else:
                names, _, header = line.partition(":")
                lines = []
                found.update(dict.fromkeys((name.strip() for name in names.split(",")), (header.strip(), lines)))
    return found


@cache
def find_grammar(name: str) -> Grammar | None:
    """Return the grammar of a program, or of a program with its subcommand; None if it isn't known."""
    versioned = _VERSIONED.fullmatch(name)
    block = known_programs().get(versioned[1] if versioned else name)
    if block is None:
        return None
    header, lines = block
    roles, _, attributes = header.partition(";")
    grammar = Grammar(name, tuple(roles.split()), frozenset(attributes.split()))
    for index, attribute in enumerate(words := attributes.split()):
        if attribute == "dashed":
            grammar.dashed = words[index + 1] if words[index + 1 : index + 2] else ""
    for line in lines:
        _add_options(grammar, line)
    return grammar


def _add_options(grammar: Grammar, line: str) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "use":
        for name in rest.split():
            if (other := find_grammar(name)) is not None:
                grammar.options = {**other.options, **grammar.options}
                grammar.attributes |= other.attributes & {"digits"}
    elif kind == "choice":
        option, _, expression = rest.partition(" ")
        grammar.options[option] = re.compile(expression, re.DOTALL)
    else:
        names = {name for text in rest.split() for name in _spellings(grammar, text)}
        if kind in ("changes", "first", "lists", "nofollow"):
            grammar.groups.setdefault(kind, set()).update(names)
        else:
            grammar.options.update(dict.fromkeys(names, kind))


def _spellings(grammar: Grammar, text: str) -> list[str]:
    if text.startswith("--") or not text.startswith("-") or grammar.attributes & {"single", "expression"}:
        return [text]
    return [f"-{letter}" for letter in text[1:]]


def reading_programs() -> Iterator[str]:
    """Yield the programs and subcommands that only read."""
    for name, (header, _) in known_programs().items():
        attributes = header.partition(";")[2].split()
        if "reads" in attributes or "bare" in attributes:
            yield name
