"""Judge the program texts that are operands: scripts of sed and awk, SQL, assignments of make.

A text is harmless if it can be read completely and contains nothing that runs a command or writes a file. Anything that
can't be read is not harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["JUDGES", "is_product"]


def is_harmless_sed(script: str) -> bool:
    """Whether a sed script only edits and prints.

    Example:
        >>> is_harmless_sed("/foo/,/bar/p"), is_harmless_sed("1,5p;s/w x/e/g"), is_harmless_sed("1erm x")
        (True, True, False)
    """
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return bool(script)


_SED_REGEX = r"(?:[^{d}\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.)*\])*"
"""A regular expression up to its delimiter. A program for which one in brackets ends it reads no valid expression."""
_SED_SLASHES = _SED_REGEX.replace("{d}", "/")
_SED_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|[+~][0-9]+|/{_SED_SLASHES}/[IM]*)"
_SED_TEXT = r"(?:[^{d}\\\n]|\\.)*"


def _sed_substitution(delimiter: str) -> str:
    d = re.escape(delimiter)
    return rf"s{d}{_SED_REGEX.replace('{d}', d)}{d}{_SED_TEXT.replace('{d}', d)}{d}[gpIiMm0-9]*"


_SED_COMMAND = re.compile(
    rf"[\s;]*(?:{_SED_ADDRESS}(?:\s*,\s*{_SED_ADDRESS})?)?\s*!?\s*"
    rf"(?:(?:[=dDgGhHnNpPxlqQzF][0-9]*|[bt:]\s*[A-Za-z0-9]*|y(?:/{_SED_TEXT.replace('{d}', '/')}){{2}}/"
    f"|{'|'.join(map(_sed_substitution, '/|,#@:!%_+'))})"
    r"(?=[\s;}]|$)|[{}]|[aic]\\?[^\n]*\Z)[\s;]*"
)


def is_harmless_awk(script: str) -> bool:
    """Whether an awk program only computes and prints to its output.

    Example:
        >>> is_harmless_awk("$3 > 100 {print $1/2, \\"|\\"}"), is_harmless_awk("{print > $1}")
        (True, False)
        >>> is_harmless_awk('/a|b/ && NR > 1'), is_harmless_awk('BEGIN{system("rm x")}')
        (True, False)
    """
    tokens: list[str] = []
    at = 0
    while at < len(script):
        follows_operand = bool(tokens) and (tokens[-1][-1] in ")]" or _AWK_OPERAND.fullmatch(tokens[-1]) is not None)
        if script[at] == "/" and not follows_operand:
            found = _AWK_REGEX.match(script, at)
        else:
            found = _AWK_TOKEN.match(script, at)
        if found is None:
            return False
        at = found.end()
        if token := found[0].strip(" \t"):
            tokens.append(token)
    printing = False
    for token in tokens:
        printing = token in ("print", "printf") or (printing and token not in (";", "}", "\n"))
        if token in _AWK_RUNS or token.startswith("@") or (printing and token in (">", ">>")):
            return False
    return bool(tokens)


_AWK_RUNS = frozenset({"system", "getline", "|", "|&", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "extension"})
_AWK_OPERAND = re.compile(r'(?!(?:return|print|printf|in|case|do|else|delete)$)[\w.]+|"[\s\S]*"|\$|\+\+|--')
_AWK_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]/\\\n]|\\.)*\])*/")
_AWK_TOKEN = re.compile(
    r'[ \t]+|\n|#[^\n]*|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|[0-9.]+|\|\||\|&|\||>>|>=|<=|==|!=|&&|\+\+|--|@\w*'
    r"|[-+*/%^!~?:,;(){}\[\]<>=$]"
)


def is_harmless_sql(text: str) -> bool:
    """Whether an SQL text, or a command of sqlite3, only reads the database.

    Example:
        >>> is_harmless_sql("select * from t limit 3"), is_harmless_sql(".tables"), is_harmless_sql(".shell rm x")
        (True, True, False)
    """
    return _SQL.fullmatch(text) is not None and _SQL_ACTS.search(text) is None


_SQL = re.compile(
    r"\s*(?:(?:select|with|explain|show|describe|desc|values|pragma\s+\w+(?:\(\w+\))?\s*;?\s*$)\b[^;\\]*;?\s*"
    r"|pragma\s+\w+(?:\(\w+\))?\s*;?\s*|\.(?:tables|schema|indexes|databases)(?:\s+[\w%]+)?|\\d[a-z+]*(?:\s+[\w.*]+)?|\\l\+?)",
    re.IGNORECASE,
)
_SQL_ACTS = re.compile(
    r"writefile|readfile|load_extension|\bedit\b|attach|\binto\b|\bcopy\b|pg_|lo_(?:im|ex)port|dblink|tokenizer|zipfile"
    r"|\b(?:insert|update|delete|drop|create|alter|replace|vacuum|truncate|grant|set|call|do)\b|sys_|load_file",
    re.IGNORECASE,
)


def is_harmless_jq(program: str) -> bool:
    """Whether a program of jq or yq reads nothing but its input."""
    return _JQ_ACTS.search(program) is None


_JQ_ACTS = re.compile(r"\b(?:import|include|load\w*|strload|system)\b")


def is_harmless_assignment(word: str) -> bool:
    """Whether an operand of make is a target, or sets a variable to a number or a switch.

    Example:
        >>> [is_harmless_assignment(word) for word in ("test", "VERBOSE=1", "CC=./evil", "X:=$(shell x)")]
        [True, True, False, False]
    """
    return "=" not in word or _SWITCH.fullmatch(word) is not None


_SWITCH = re.compile(r"[A-Za-z_]\w*=(?:[0-9]*|true|false|yes|no|on|off|y|n)", re.IGNORECASE | re.ASCII)
_FROM_FILE = re.compile(r"(?:^|=)[@<]")


def is_harmless_data(text: str) -> bool:
    """Whether the data of a request are the text itself, not the contents of a file."""
    return _FROM_FILE.search(text) is None


_PRODUCT = re.compile(
    r"(?:\w[^/.]*/)*\w[^/.]*(?:\.(?:a|bin|class|d|dll|dylib|exe|jar|o|obj|out|so|test|wasm))?", re.ASCII | re.IGNORECASE
)


def is_product(path: str) -> bool:
    """Whether a path looks like what a compiler makes: nothing that is read as code, settings or text.

    Example:
        >>> is_product("bin/server"), is_product("build/x.o"), is_product(".git/hooks/x"), is_product("main.py")
        (True, True, False, False)
    """
    return _PRODUCT.fullmatch(path) is not None


def _shows_no_environment(text: str) -> bool:
    """Whether an operand of ps isn't one of its options without a dash that show other programs' environment."""
    return not (text.isalpha() and "e" in text.lower())


def _is_format(text: str) -> bool:
    return text.startswith("+")


JUDGES: Mapping[str, Callable[[str], bool]] = {
    "sed": is_harmless_sed,
    "awk": is_harmless_awk,
    "jq": is_harmless_jq,
    "sql": is_harmless_sql,
    "assign": is_harmless_assignment,
    "data": is_harmless_data,
    "format": _is_format,
    "processes": _shows_no_environment,
}
"""Whether a text is harmless, by the role that it has."""
