"""Parse command lines: only a command, or a pipeline of commands, of literal words is accepted.

A bash grammar parses the text, so that every other construct of a shell is recognised and refused by name. The result
is argument vectors, which are judged, shown and run; no shell reads the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from llm_do.errors import ToolError
from llm_do.policy.values import Pipeline

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["CommandRefusedError", "parse_command"]

_MAX_BYTES = 16_384
_MAX_PIPES = 100
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(rb'\\([$`"\\])')
_BRACES = re.compile(rb"\{[^{}]*(?:,|\.\.)[^{}]*\}")
# The grammar's scanner reads outside its tables for characters far beyond ASCII, which can end the process. To a shell
# they are parts of words like any letter, so it is given letters; the words come from the text itself.
_LETTERS = bytes(byte if byte < 0x80 else ord("x") for byte in range(256))
_LINE_BREAK = re.compile(r"[\r\n\v\f\x85\u2028\u2029]")

_ONE_COMMAND = "run one command, or a pipeline of commands, in each call"
_REASONS = {
    "ansi_c_string": "`$'...'` is not supported: write the characters themselves",
    "arithmetic_expansion": "arithmetic (`$((...))`) is not supported",
    "brace_expression": "brace expansion is not supported: write each name",
    "c_style_for_statement": f"loops are not supported: {_ONE_COMMAND}",
    "case_statement": f"`case` is not supported: {_ONE_COMMAND}",
    "command_substitution": "command substitution (`$(...)`) is not supported: run that command first",
    "comment": "comments are not supported: leave it out, or quote the `#`",
    "compound_statement": f"`{{ ... }}` is not supported: {_ONE_COMMAND}",
    "declaration_command": "variables are not supported: write the values themselves",
    "expansion": "variables are not supported: write the value, or put the word in single quotes",
    "file_redirect": "redirections (`>`, `<`, `2>&1`) are not supported: both output streams are returned",
    "for_statement": f"loops are not supported: {_ONE_COMMAND}",
    "function_definition": f"functions are not supported: {_ONE_COMMAND}",
    "heredoc_redirect": "here-documents (`<<`) are not supported: commands get no input",
    "herestring_redirect": "here-strings (`<<<`) are not supported: commands get no input",
    "if_statement": f"`if` is not supported: {_ONE_COMMAND}",
    "list": f"`&&` and `||` are not supported: {_ONE_COMMAND}",
    "negated_command": "`!` before a command is not supported: look at its exit code",
    "process_substitution": "process substitution (`<(...)`) is not supported",
    "simple_expansion": "variables are not supported: write the value, or put the word in single quotes",
    "subshell": f"subshells (`(...)`) are not supported: {_ONE_COMMAND}",
    "test_command": "`[` and `[[` are not supported",
    "unset_command": "variables are not supported",
    "variable_assignment": "setting variables is not supported: the environment is fixed",
    "variable_assignments": "setting variables is not supported: the environment is fixed",
    "while_statement": f"loops are not supported: {_ONE_COMMAND}",
    "&": "background jobs (`&`) are not supported: a command is waited for",
    ";": f"`;` is not supported: {_ONE_COMMAND}",
    ";;": f"`;;` is not supported: {_ONE_COMMAND}",
    "\n": f"line breaks are not supported: {_ONE_COMMAND}",
    "|&": "`|&` is not supported: use `|`, standard error is returned as well",
    "$": "a `$` outside quotes is not supported: leave it out, or put it in single quotes",
}
_DEEPER = ("redirected_statement", "string", "concatenation", "command_name", "command", "pipeline", "program")


class CommandRefusedError(ToolError):
    """A command line isn't supported; the message says why and what to do instead."""


def parse_command(text: str) -> Pipeline:
    """Parse a command line into the argument vectors of its stages: at least one, none of them empty.

    Anything but a pipeline of commands of literal words raises `CommandRefusedError`.

    Example:
        >>> parse_command("git log -3 --format='%h %s' | head -n 2")
        (('git', 'log', '-3', '--format=%h %s'), ('head', '-n', '2'))
        >>> parse_command("ls; rm x")
        Traceback (most recent call last):
        ...
        llm_do.toolsets.shell.command_line.CommandRefusedError: `;` is not supported: run one command, ...
    """
    source = _encoded(text)
    root = _parser().parse(source.translate(_LETTERS)).root_node
    statements = root.children
    if len(statements) == 1 and statements[0].type == "command" and not root.has_error:
        return (_words(statements[0], source),)
    if len(statements) == 1 and statements[0].type == "pipeline" and not root.has_error:
        return _stages(statements[0], source)
    raise _refused(root)


@lru_cache(maxsize=1)
def _language() -> object:
    from tree_sitter import Language
    from tree_sitter_bash import language

    return Language(language())


def _parser() -> Parser:
    from tree_sitter import Parser

    return Parser(_language())  # pyright: ignore[reportArgumentType]


def _encoded(text: str) -> bytes:
    if not text.strip():
        raise CommandRefusedError("the command is empty")
    text = text.strip(" \t\n")
    try:
        source = text.encode()
    except UnicodeEncodeError:
        raise CommandRefusedError("the command contains characters that can't be encoded") from None
    if b"\0" in source:
        raise CommandRefusedError("the command contains a NUL character")
    if len(source) > _MAX_BYTES or source.count(b"|") > _MAX_PIPES:
        raise CommandRefusedError(f"the command is longer than {_MAX_BYTES:,} bytes or {_MAX_PIPES} pipes")
    return source


def _stages(pipeline: Node, source: bytes) -> Pipeline:
    stages: list[tuple[str, ...]] = []
    for index, child in enumerate(pipeline.children):
        if index % 2 == 0 and child.type == "command":
            stages.append(_words(child, source))
        elif index % 2 == 0 or child.type != "|":
            raise _refused(child)
    return tuple(stages)


def _words(command: Node, source: bytes) -> tuple[str, ...]:
    words: list[str] = []
    end = command.start_byte
    for index, child in enumerate(command.children):
        if index == 0 and child.type != "command_name":
            raise _refused(child)
        if source[end : child.start_byte].strip(b" \t"):
            raise CommandRefusedError(_REASONS["\n"])
        node = child.children[0] if index == 0 and len(child.children) == 1 else child
        words.append(_word(node, source))
        end = child.end_byte
    if not words or not words[0]:
        raise CommandRefusedError("the command has no program")
    return tuple(words)


def _word(node: Node, source: bytes) -> str:
    if node.type == "concatenation":
        parts = [_part(child, source) for child in node.children]
        if sum(child.end_byte - child.start_byte for child in node.children) != node.end_byte - node.start_byte:
            raise _refused(node)
    else:
        parts = [_part(node, source)]
    bare = b"".join(part for part, is_bare in parts if is_bare)
    if _BRACES.search(bare):
        raise CommandRefusedError("brace expansion is not supported: write each name, or quote the braces")
    if parts[0][1] and parts[0][0].startswith(b"~"):
        raise CommandRefusedError("`~` does not stand for a home folder here: write the path")
    return b"".join(_ESCAPED.sub(rb"\1", part) if is_bare else part for part, is_bare in parts).decode()


def _part(node: Node, source: bytes) -> tuple[bytes, bool]:
    """Return a part of a word, and whether it is outside quotes, in which case it still contains escapes."""
    text = source[node.start_byte : node.end_byte]
    match node.type:
        case "word" | "number" if not node.named_children:
            plain = _ESCAPED.sub(b"", text)
            if any(mark in plain for mark in b"*?["):
                raise CommandRefusedError(
                    "file patterns (`*`, `?`, `[...]`) are not expanded: name the files, find them with `find`, or "
                    "quote the pattern if the program itself takes it"
                )
            if b" " in plain or b"\t" in plain:  # the grammar takes `] {` and `} ]` for one word
                raise CommandRefusedError("a `]`, `{` or `}` between spaces can't be read: quote it")
            if _LINE_BREAK.search(text.decode()) or any(mark in plain for mark in b"$`'\"\\;&|<>()"):
                raise CommandRefusedError("it contains characters that are not part of a literal word")
            return text, True
        case "raw_string":
            return text[1:-1], False
        case "string" if all(child.type == "string_content" for child in node.named_children):
            return _ESCAPED_IN_QUOTES.sub(rb"\1", text[1:-1]), False
        case _:
            raise _refused(node)


def _refused(node: Node) -> CommandRefusedError:
    """Return the error of a refused tree: the first node with a reason."""
    if reason := _reason(node):
        return CommandRefusedError(reason)
    if node.parent is None and len(node.named_children) > 1 and not node.has_error:
        return CommandRefusedError(_REASONS["\n"])
    if node.has_error:
        return CommandRefusedError("the command can't be read: a quote or a bracket may be missing")
    return CommandRefusedError("only a command, or a pipeline of commands, of literal words can run")


def _reason(root: Node) -> str | None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not node.is_missing and (reason := _REASONS.get(node.type)):
            return reason
        if node.parent is None or node.type in _DEEPER or node.type == "ERROR":
            waiting.extend(reversed(node.children))
    return None
