"""What a `*` at the end of an allowed command does not cover: options that write, execute or leave the project.

A table of programs, a rule for the ones that aren't in it, and the programs that run other programs.
A rule that means such an option spells it: `shell(sort -o sorted.txt *)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llm_do._frozen import frozen

__all__ = ["INTERPRETERS", "RISKS", "WRAPPERS", "Risk", "is_risky"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRAPPERS = _words("""
    bash builtin busybox bunx chroot chrt command container csh dash docker doas entr env exec fakeroot fish
    flock ionice ksh ltrace nice nohup npx nsenter numactl parallel pipx podman pkexec pwsh rlwrap runuser script
    setpriv setsid sh ssh stdbuf strace su sudo systemd-run taskset time timeout tmux toybox unbuffer unshare uvx
    watch xargs zsh
""")
"""Programs whose arguments are a command. No bare name's rule reaches through them."""

INTERPRETERS = _words("""
    awk bun deno ed emacs ex gawk git irb julia lua make mawk nawk node osascript perl php powershell psql python
    python3 R Rscript ruby sed sqlite3 vi vim
""")
"""Programs whose arguments can be a program: `PROGRAM *` is worth a warning."""


@frozen
class Risk:
    """What is risky about one program.

    Args:
        exact: Options as they are written.
        long: Names of `--` options; abbreviations count, as the programs understand them.
        short: Letters of `-` options, also inside a cluster such as `-uo`.
        valued: Letters that end a cluster because the rest is their value.
        safe: Names of `--` options that only look like an abbreviation.
        operands: How many operands are harmless, None for any number; where a second one is an output file.
        bundled: Whether the first operand may be options without a dash.
        assigns: Whether an operand with `=` in it sets a variable, whose value may be run.
    """

    exact: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    short: str = ""
    valued: str = ""
    safe: frozenset[str] = frozenset()
    operands: int | None = None
    bundled: bool = False
    assigns: bool = False


def _risk(
    *,
    exact: str = "",
    long: str = "",
    short: str = "",
    valued: str = "",
    safe: str = "",
    operands: int | None = None,
    bundled: bool = False,
    assigns: bool = False,
) -> Risk:
    return Risk(_words(exact), _words(long), short, valued, _words(safe), operands, bundled, assigns)


_MAKE = _risk(long="directory eval file include-dir makefile", short="CEfI", assigns=True)


_HARMLESS = _words("""
    basename cat cmp comm cut df diff dirname du echo egrep fgrep grep head join ls md5sum nl od paste printf pwd
    realpath rev sha1sum sha256sum stat tac tail tr true wc which
""")

RISKS: dict[str, Risk] = {
    **dict.fromkeys(_HARMLESS, Risk()),
    "git": _risk(
        exact="-c -C",
        long="config-env contents exec exec-path ext-diff git-dir no-index open-files-in-pager output "
        "output-directory receive-pack super-prefix textconv upload-pack work-tree",
        short="O",
        valued="S",
        safe="text",
    ),
    "find": _risk(exact="-delete -exec -execdir -files0-from -fls -fprint -fprint0 -fprintf -ok -okdir"),
    "fd": _risk(long="exec exec-batch", short="xX"),
    "rg": _risk(long="hostname-bin pre search-zip", short="z"),
    "sort": _risk(long="compress-program files0-from output temporary-directory", short="oT", valued="ktS"),
    "uniq": _risk(operands=1),
    "xxd": _risk(operands=1),
    "sed": _risk(long="in-place", short="i"),
    "tree": _risk(short="oR"),
    "date": _risk(long="set", short="s", valued="d"),
    "file": _risk(long="compile magic-file", short="Cm"),
    "man": _risk(long="html pager preprocessor", short="HPC"),
    "make": _MAKE,
    "gmake": _MAKE,
    "tar": _risk(
        long="checkpoint-action info-script new-volume-script rmt-command rsh-command to-command use-compress-program",
        short="FI",
        bundled=True,
    ),
    "zip": _risk(exact="-TT", long="unzip-command", short="T"),
    "rsync": _risk(long="rsh rsync-path", short="e"),
    "curl": _risk(
        long="alt-svc config cookie-jar dump-header engine etag-save hsts libcurl output output-dir proxy remote-name "
        "remote-name-all stderr trace trace-ascii upload-file",
        short="cDJKoOTx",
        valued="dHAbeFmrXuw",
    ),
    "wget": _risk(
        long="append-output body-file config directory-prefix execute input-file output-document output-file "
        "post-file use-askpass",
        short="aeioOP",
    ),
}
"""By program. One that stands here with nothing has no risky option; others are judged by their options' names."""

_RISKY_WORDS = _words("""
    cmd command config delete editor eval exec execute hook in-place inplace out outdir outfile output pager plugin
    preprocessor program script shell write
""")
_RISKY_ENDS = ("cmd", "command", "exec", "script", "tool")
_NAME = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)")


def is_risky(programs: Iterable[str], token: str) -> bool:
    """Whether a word of a command is an option that a `*` must not cover.

    Args:
        programs: The programs that the word may be an option of.
        token: The word.

    Returns:
        True for an option that writes, executes or leaves the project.

    Example:
        >>> is_risky(["sort"], "-uo"), is_risky(["sort"], "--outp=x"), is_risky(["sort"], "-u")
        (True, True, False)
    """
    if len(token) < 2:
        return False
    if token[0] != "-":
        return "=" in token and any(RISKS[program].assigns for program in programs if program in RISKS)
    return any(_is_risky(RISKS.get(program), token) for program in programs)


def _is_risky(risk: Risk | None, token: str) -> bool:
    if risk is None:
        return _sounds_risky(token)
    name = token.partition("=")[0]
    if name in risk.exact:
        return True
    if token.startswith("--"):
        stem = name[2:]
        return bool(stem) and stem not in risk.safe and any(long.startswith(stem) for long in risk.long)
    for letter in token[1:]:
        if letter in risk.short:
            return True
        if letter in risk.valued:
            return False
    return False


def _sounds_risky(token: str) -> bool:
    if not token.startswith("--") and token[1] in "ceo":
        return True
    found = _NAME.match(token)
    if found is None or (not token.startswith("--") and len(found[1]) < 3):
        return False
    name = found[1].lower()
    parts = [name, *re.split(r"[-_]", name)]
    if name.endswith(_RISKY_ENDS):
        return True
    return any(word.startswith(part) for part in parts if len(part) >= 3 for word in _RISKY_WORDS)
