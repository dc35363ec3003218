"""Generate the page about the programs whose grammar rules on commands know, from the tables that decide."""

from __future__ import annotations

from llm_do.policy.commands.grammar import Grammar, find_grammar, known_programs
from llm_do.policy.commands.launching_programs import INTERPRETERS, RUNNERS, WRAPPERS
from llm_do.policy.commands.programs import development, git, launchers, services, text_programs
from scripts.pages.markdown import code

__all__ = ["commands"]

HEAD = """\
# Programs in rules

The programs whose options and operands [rules on commands](../toolsets.md#commands) know. A final `*` in a rule covers
their operands and the options listed here; a rule has to spell out any other option, or the call needs approval. An
option in brackets takes a value, and the value is checked as well where it is a path, a URL or a program. For programs
that aren't listed, `*` covers no option that seems to take a file or a program.

`shell_readonly` runs the programs marked "reads", with these options, without approval. Those marked "lists" only read
without operands, or with an option that makes them list.
"""

LAUNCHING = """\
A rule whose `*` stands for the command that one of these runs allows more than it seems to, and gets a warning
([LD603](../diagnostics.md#ld603)). Where the command is spelled out, as in `uv run pytest *`, its own options count. A
rule that denies a program looks for it in the words of these programs, too.
"""

_GROUPS = (
    ("Files and text", text_programs.TABLE),
    ("git", git.TABLE),
    ("Development", development.TABLE),
    ("Services", services.TABLE),
    ("Programs that run another one", launchers.TABLE),
)


def commands() -> str:
    """Generate the page `commands.md`."""
    parts = [HEAD]
    for title, text in _GROUPS:
        parts += [f"## {title}\n", _group(text)]
    parts += ["## Programs that can run any other\n", _launching()]
    return "\n".join(parts)


def _group(text: str) -> str:
    rows: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith((" ", "@")):
            continue
        names = [name.strip() for name in line.partition(":")[0].split(",")]
        grammar = find_grammar(names[0])
        assert grammar is not None, names
        assert all(name in known_programs() for name in names)
        marks = [mark for mark, attribute in (("reads", "reads"), ("lists", "bare")) if attribute in grammar.attributes]
        listed = " ".join(_listed(option, kind) for option, kind in _options(grammar))
        about = f" ({', '.join(marks)})" if marks else ""
        rows.append(f"* {', '.join(map(code, names))}{about}: {code(listed) if listed else 'no option'}")
    return "\n".join(rows) + "\n"


def _listed(option: str, kind: object) -> str:
    return option if kind in ("flags", "follow") else f"[{option}]"


def _options(grammar: Grammar) -> list[tuple[str, object]]:
    return sorted(grammar.options.items(), key=lambda item: (item[0].lstrip("-").lower(), item[0]))


def _launching() -> str:
    runners = sorted(f"{program} {word}" for program, words in RUNNERS.items() for word in words if program != "git")
    return f"{LAUNCHING}\n{', '.join(map(code, sorted({*WRAPPERS, *INTERPRETERS, *runners})))}\n"
