"""Propose rules that would allow a call, for the message of a denial and for a person to save."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from llm_do.policy.command_patterns import is_pipeline
from llm_do.policy.commands.command_reading import read_command
from llm_do.policy.matcher import is_unresolved, matches
from llm_do.policy.pattern import PatternError, parse_pattern
from llm_do.policy.proofs import facts_of_call, is_overly_broad
from llm_do.policy.rules import Rule
from llm_do.policy.urls.url import Url
from llm_do.policy.values import CommandLine, Host, Pipeline, ToolCallInfo, real_path
from llm_do.text.canonical_json import canonical_json
from llm_do.text.globs import path_parts
from llm_do.text.sanitizer import sanitize

__all__ = ["allows_call", "narrowest_rule", "proposed_rules", "quote_argument", "wider_rule"]

_PLAIN = re.compile(r"(?!=|[A-Za-z_][A-Za-z0-9_]*=)[A-Za-z0-9_./@%+:=-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOOL = re.compile(r"[A-Za-z0-9_./@%+-]+")


def quote_argument(text: str) -> str:
    """Quote a text as a pattern that matches this text only.

    Example:
        >>> quote_argument("notes/todo.md"), quote_argument("a *"), quote_argument("it's")
        ('notes/todo.md', "'a *'", "'it'\\\\''s'")
    """
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _copied_argument(text: str) -> str:
    r"""Quote a text as a pattern that a person can copy: `?` stands for a character that can't be shown as it is.

    Example:
        >>> _copied_argument("a\nb")
        "'a'?'b'"
    """
    if sanitize(text) == text:
        return quote_argument(text)
    runs = groupby(text, lambda char: char == "\\" or sanitize(char) != char)
    return "".join("?" * len(list(run)) if hidden else f"'{_inside(run)}'" for hidden, run in runs)


def _inside(characters: Iterable[str]) -> str:
    return "".join(characters).replace("'", "'\\''")


def narrowest_rule(call: ToolCallInfo, *, limit: int | None = 500) -> str | None:
    """Return the narrowest rule that allows a call.

    It constrains the primary argument, or every argument if the tool declares no primary one.

    Example:
        >>> narrowest_rule(ToolCallInfo("write_file", {"path": "notes/todo.md", "content": ""}, primary="path"))
        'write_file(notes/todo.md)'
    """
    if is_unresolved(call):
        return None
    return next((rule for rule in _narrow_rules(call, limit) if _is_usable(rule, call)), None)


def _is_usable(rule: str, call: ToolCallInfo) -> bool:
    """Whether a rule can be proposed: it allows the call, reads the same where it is shown, and gets no warning."""
    return allows_call(rule, call) and sanitize(rule) == rule and not _is_broad(rule, call)


def _narrow_rules(call: ToolCallInfo, limit: int | None) -> Iterator[str]:
    """Yield rules that may allow a call, the narrowest first."""
    tool = call.tool_name if _TOOL.fullmatch(call.tool_name) else "'" + call.tool_name.replace("'", "'\\''") + "'"
    beside = [name for name in call.resolved if name != call.primary] if isinstance(call.primary, str) else []
    if isinstance(call.primary, str) and not beside:
        text = _argument(call, call.primary)
        if text is not None and (limit is None or len(tool) + len(text) + 2 <= limit):
            yield f"{tool}({text})"
        names: list[str] = [name for name in call.args if name != call.primary] if text is not None else list(call.args)
    else:
        names = [call.primary, *beside] if isinstance(call.primary, str) else list(call.primary or call.args)
    found = {name: _argument(call, name) for name in names if _NAME.fullmatch(name)}
    parts = [f"{name}={text}" for name, text in found.items() if text is not None]
    while parts:
        rule = f"{tool}({', '.join(parts)})"
        if limit is None or len(rule) <= limit:
            yield rule
        parts.remove(max(parts, key=len))
    yield tool


def proposed_rules(call: ToolCallInfo) -> list[str]:
    """Return the rules a person can choose from to allow a call and calls like it, the narrowest first.

    Each applies only to the agent that makes the call.

    Example:
        >>> path = {"path": "notes/todo.md"}
        >>> proposed_rules(ToolCallInfo("write_file", path, primary="path", resolved=path))
        ['main:write_file(notes/todo.md)', 'main:write_file(notes/**)', 'main:write_file']
        >>> args, url = {"url": "https://a.org/v1/me"}, {"url": Host("a.org", Url("https", 443, "/v1/me"))}
        >>> proposed_rules(ToolCallInfo("http_get", args, primary="url", resolved=url))
        ['main:http_get(https://a.org/v1/me)', 'main:http_get(https://a.org/v1/**)', 'main:http_get']
        >>> command = {"command": (("git", "log", "-3"),)}
        >>> proposed_rules(ToolCallInfo("shell", {"command": "git log -3"}, primary="command", resolved=command))
        ['main:shell(git log -3)', 'main:shell(git log *)']
    """
    hint = narrowest_rule(call)
    if hint is None:
        return []
    found = [hint]
    tool = hint.partition("(")[0]
    value = call.resolved.get(call.primary) if isinstance(call.primary, str) else None
    path = real_path(value)
    if path is not None and "/" in path:
        found.append(f"{tool}({quote_argument(path.rpartition('/')[0])}/**)")
    elif isinstance(value, Host) and value.url is not None:
        found.append(f"{tool}({_wider_url(value, value.url)})")
    elif value is not None and is_pipeline(value):
        words = _subcommand(value[0])
        if len(value) == 1 and len(words) > 1:
            found.append(f"{tool}({' '.join(map(quote_argument, words))} *)")
    if not is_pipeline(value):
        found.append(tool)
    rules = [f"{call.path}:{rule}" for rule in dict.fromkeys(found)]
    return [
        rule
        for rule in rules
        if allows_call(rule, call)
        and sanitize(rule) == rule
        and (rule.endswith(f":{tool}") or not _is_broad(rule, call))
    ]


def wider_rule(call: ToolCallInfo) -> str | None:
    """Return a rule that allows a call and calls like it, unless it would allow more than a reader expects.

    Example:
        >>> wider_rule(ToolCallInfo("lend", {"title": "Emma"}))
        'lend'
        >>> path = {"path": "todo.md"}
        >>> wider_rule(ToolCallInfo("write_file", path, kind="toolset", primary="path", resolved=path))
    """
    bare = not call.resolved and (call.primary is None or call.kind == "function")
    for rule in proposed_rules(call)[1:]:
        text = rule.removeprefix(f"{call.path}:")
        if ("(" in text or bare) and not _is_broad(text, call) and allows_call(text, call):
            return text
    return None


def allows_call(rule: str, call: ToolCallInfo) -> bool:
    """Whether a rule is valid and allows a call."""
    try:
        return matches(parse_pattern(rule), call)
    except PatternError:
        return False


def _is_broad(rule: str, call: ToolCallInfo) -> bool:
    return is_overly_broad(Rule("allow", parse_pattern(rule), rule), [facts_of_call(call)])


def _subcommand(argv: tuple[str, ...]) -> list[str]:
    """Return a program with its subcommands and what it launches, or with a word that looks like a subcommand."""
    known = max((piece.word for piece in read_command(argv).pieces if piece.role in ("sub", "launch")), default=0)
    if known:
        return list(argv[: known + 1])
    return [argv[0], *(word for word in argv[1:2] if re.fullmatch(r"[a-z][a-z-]*", word))]


def _command_rule(line: Pipeline) -> str:
    """Return a command line as a rule writes it."""
    joins = ("", *(f" {join} " for join in CommandLine.joins_of(line)))
    return "".join(f"{join}{' '.join(map(quote_argument, argv))}" for join, argv in zip(joins, line, strict=True))


def _wider_url(host: Host, url: Url) -> str:
    """Return the pattern of all URLs in the folder that a URL is in; with any query, if it has one."""
    folder = url.path.rpartition("/")[0]
    return quote_argument(replace(url, path=folder, query=None).text(host)) + ("/**" if url.query is None else "/**?*")


def _argument(call: ToolCallInfo, name: str) -> str | None:
    if name in call.resolved:
        value = call.resolved[name]
        if isinstance(value, Host):
            return _copied_argument(value if value.url is None else value.url.text(value))
        if (path := real_path(value)) is not None:
            parts = path_parts(path) or ["."]
            return _copied_argument(parts[0] + "/".join(parts[1:]) if parts[0] == "/" else "/".join(parts))
        return _command_rule(value) if is_pipeline(value) else None
    if name not in call.args:
        return None
    value = call.args[name]
    try:
        return _copied_argument(value if isinstance(value, str) else canonical_json(value))
    except TypeError:
        return None
