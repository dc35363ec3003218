"""Recognise commands that only read: the programs of `shell_readonly`, each with its permitted options and arguments.

The result is the paths that a command names, which `llm_do.toolsets.shell.path_arguments` looks up, or the reason why
the command may do more than read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llm_do._startup.frozen import frozen
from llm_do.toolsets.shell.command_options import Options, UnknownOptionError, read_words

__all__ = ["READING_PROGRAMS", "NotReadOnlyError", "ReadOnlyCommand", "parse_read_only"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GIT_COMMON = (
    "patch no-patch raw stat numstat shortstat summary name-only name-status compact-summary minimal patience "
    "histogram no-renames full-index binary text ignore-space-at-eol ignore-space-change ignore-all-space "
    "ignore-blank-lines function-context no-color no-ext-diff no-textconv no-prefix pickaxe-all pickaxe-regex "
    "exit-code quiet cached staged merge-base ita-invisible-in-index check no-indent-heuristic indent-heuristic"
)
_GIT_COMMON_VALUED = (
    "unified diff-filter diff-algorithm inter-hunk-context word-diff-regex src-prefix dst-prefix line-prefix anchored"
)
_GIT_COMMON_OPTIONAL = (
    "stat abbrev find-renames find-copies color word-diff dirstat relative color-words color-moved break-rewrites"
)
_GIT_LOG = (
    "oneline graph all branches tags remotes merges no-merges first-parent reverse decorate no-decorate follow "
    "full-history topo-order date-order author-date-order left-right cherry-pick cherry cherry-mark boundary "
    "simplify-merges simplify-by-decoration ancestry-path parents children no-walk walk-reflogs invert-grep "
    "all-match regexp-ignore-case extended-regexp fixed-strings perl-regexp basic-regexp source use-mailmap no-mailmap "
    "abbrev-commit no-abbrev-commit relative-date notes no-notes log-size no-expand-tabs cc root clear-decorations "
    "dense sparse"
)
_GIT_LOG_VALUED = (
    "max-count skip since after until before author committer grep grep-reflog max-parents min-parents date format "
    "encoding decorate-refs decorate-refs-exclude exclude"
)
_GIT_LOG_OPTIONAL = "pretty decorate branches tags remotes glob no-walk expand-tabs notes"

_GIT: Mapping[str, Options] = {
    "status": Options.of(
        "sbz",
        "",
        "short branch show-stash long no-renames null ahead-behind no-ahead-behind no-column",
        "",
        "porcelain untracked-files ignored find-renames column",
        attached="u",
    ),
    "log": Options.of(
        "pusimcEFPgz",
        "nSGLU",
        f"{_GIT_COMMON} {_GIT_LOG}",
        f"{_GIT_COMMON_VALUED} {_GIT_LOG_VALUED}",
        f"{_GIT_COMMON_OPTIONAL} {_GIT_LOG_OPTIONAL}",
        attached="MCB",
        digits=True,
    ),
    "show": Options.of(
        "pusmcz",
        "SGU",
        f"{_GIT_COMMON} {_GIT_LOG}",
        f"{_GIT_COMMON_VALUED} {_GIT_LOG_VALUED}",
        f"{_GIT_COMMON_OPTIONAL} {_GIT_LOG_OPTIONAL}",
        attached="MCB",
        digits=True,
    ),
    "diff": Options.of("puswbRaz", "SGU", _GIT_COMMON, _GIT_COMMON_VALUED, _GIT_COMMON_OPTIONAL, attached="MCB"),
}
"""The read-only subcommands of git: none runs a program, writes a file or reads outside the repository."""

_PROGRAMS: Mapping[str, Options] = {
    "ls": Options.of(
        "aAbBcCdfFgGhiklmnopqQrRsStuUvxXZ1",
        "ITw",
        "all almost-all author escape ignore-backups directory classify file-type full-time group-directories-first "
        "no-group human-readable si inode kibibytes numeric-uid-gid literal hide-control-chars show-control-chars "
        "quote-name reverse recursive size zero context",
        "block-size format hide ignore indicator-style quoting-style sort time time-style tabsize width",
        "color hyperlink classify",
    ),
    "cat": Options.of(
        "AbeEnstTuv", "", "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"
    ),
    "head": Options.of("qvz", "nc", "quiet silent verbose zero-terminated", "lines bytes", digits=True),
    "tail": Options.of("qvz", "nc", "quiet silent verbose zero-terminated", "lines bytes", digits=True),
    "wc": Options.of("clLmw", "", "bytes chars lines words max-line-length", "total"),
    "grep": Options.of(
        "EFGPivwxyzZcLloqshHnTUabrI",
        "efmABCdD",
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp "
        "line-regexp count files-without-match files-with-matches only-matching quiet silent no-messages "
        "with-filename no-filename line-number initial-tab null text recursive null-data byte-offset line-buffered",
        "regexp file max-count after-context before-context context binary-files devices directories exclude "
        "exclude-from exclude-dir include label group-separator",
        "color colour",
        "f file exclude-from",
        digits=True,
    ),
    "sort": Options.of(
        "bdfgiMhnRrVcCmsuz",
        "kt",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
        "human-numeric-sort numeric-sort random-sort reverse version-sort merge stable unique zero-terminated debug",
        "key field-separator sort",
        "check",
    ),
    "uniq": Options.of(
        "cdDiuz",
        "fsw",
        "count repeated ignore-case unique zero-terminated",
        "skip-fields skip-chars check-chars",
        "all-repeated group",
    ),
}

_FIND_TESTS = _words("""
    -amin -atime -cmin -context -ctime -fstype -gid -group -iname -inum -ipath -iregex -iwholename -links -maxdepth
    -mindepth -mmin -mtime -name -newermt -path -perm -printf -regex -regextype -size -type -uid -used -user -wholename
    -xtype
""")
_FIND_FLAGS = _words("""
    ! ( ) , -a -and -d -daystart -depth -empty -executable -false -ignore_readdir_race -ls -mount -nogroup
    -noignore_readdir_race -noleaf -not -nouser -nowarn -o -or -print -print0 -prune -quit -readable -true -warn
    -writable -xdev
""")
_FIND_PATHS = _words("-anewer -cnewer -newer -samefile")


class NotReadOnlyError(Exception):
    """A command may do more than read; the message is a clause that says why."""


@frozen
class ReadOnlyCommand:
    """A command that only reads the paths it names, files below them, or files below the current directory.

    `git` is the subcommand of a git command.
    """

    paths: tuple[str, ...]
    git: str | None = None


def parse_read_only(argv: Sequence[str]) -> ReadOnlyCommand:
    """Parse a command that only reads; raise `NotReadOnlyError` if it may do more.

    Example:
        >>> parse_read_only(["grep", "-rn", "TODO", "src"]).paths
        ('src',)
        >>> parse_read_only(["find", ".", "-delete"])
        Traceback (most recent call last):
        ...
        llm_do.toolsets.shell.readonly_programs.NotReadOnlyError: find has the option -delete, ...
    """
    program, words = argv[0], argv[1:]
    check = _CHECKS.get(program)
    if check is not None:
        return check(words)
    options = _PROGRAMS.get(program)
    if options is None:
        known = ", ".join(READING_PROGRAMS)
        raise NotReadOnlyError(f"{program} is not one of the programs that only read ({known})")
    paths = [text for role, _, text in _read(program, words, options) if role != "value"]
    return ReadOnlyCommand(tuple(path for path in paths if path != "-"))


def _read(program: str, words: Sequence[str], options: Options) -> list[tuple[str, str, str]]:
    try:
        return list(read_words(words, options))
    except UnknownOptionError as error:
        raise NotReadOnlyError(f"{program} has the option {error}, which is not known to only read") from error


def _grep(words: Sequence[str]) -> ReadOnlyCommand:
    found = _read("grep", words, _PROGRAMS["grep"])
    operands = [text for role, _, text in found if role == "operand"]
    if not any(option in ("e", "regexp", "f", "file") for _, option, _ in found):
        del operands[:1]
    files = [text for role, _, text in found if role == "path"]
    return ReadOnlyCommand(tuple(path for path in (*operands, *files) if path != "-"))


def _uniq(words: Sequence[str]) -> ReadOnlyCommand:
    operands = [text for role, _, text in _read("uniq", words, _PROGRAMS["uniq"]) if role == "operand"]
    if len(operands) > 1:
        raise NotReadOnlyError("uniq writes to its second file")
    return ReadOnlyCommand(tuple(path for path in operands if path != "-"))


def _find(words: Sequence[str]) -> ReadOnlyCommand:
    rest = list(reversed(words))
    paths: list[str] = []
    while rest and not rest[-1].startswith("-") and rest[-1] not in ("(", "!", ",", ")"):
        paths.append(rest.pop())
    while rest:
        word = rest.pop()
        if word in _FIND_FLAGS:
            continue
        if word not in _FIND_TESTS and word not in _FIND_PATHS:
            raise NotReadOnlyError(f"find has the option {word}, which is not known to only read")
        if not rest:
            raise NotReadOnlyError(f"find's {word} has no value")
        value = rest.pop()
        if word in _FIND_PATHS:
            paths.append(value)
    return ReadOnlyCommand(tuple(paths))


def _git(words: Sequence[str]) -> ReadOnlyCommand:
    subcommand = words[0] if words else ""
    if subcommand in ("--no-pager", "-P") and len(words) > 1:
        return _git(words[1:])
    options = _GIT.get(subcommand)
    if options is None:
        what = f"git's {subcommand}" if subcommand else "git alone"
        raise NotReadOnlyError(f"{what} is not one of the subcommands that only read ({', '.join(_GIT)})")
    found = _read(f"git {subcommand}", words[1:], options)
    paths: list[str] = []
    for role, option, text in found:
        if role == "operand":
            # A revision may contain a path (`HEAD:path`, `:/text`), so it is checked as both.
            paths += [part for part in (text, text.partition(":")[2]) if part]
        else:
            # Whether an option takes the next word differs between versions of git.
            paths.append(text.rpartition(":")[2] if option == "L" else text)
    return ReadOnlyCommand(tuple(paths), git=subcommand)


_CHECKS: Mapping[str, Callable[[Sequence[str]], ReadOnlyCommand]] = {
    "grep": _grep,
    "uniq": _uniq,
    "find": _find,
    "git": _git,
}

READING_PROGRAMS = ("ls", "cat", "head", "tail", "wc", "grep", "find", "sort", "uniq", "git")
"""The programs that run without approval."""
