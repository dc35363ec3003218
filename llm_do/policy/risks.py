"""The risky options of programs: those that write files, execute programs or leave the project.

A `*` at the end of an allowed command covers none of them, nor the `+` commands of pagers and editors. To allow such an
option, a rule has to spell it out: `shell(sort -o sorted.txt *)`. Programs that aren't in the table are judged by the
names of their options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llm_do._startup.frozen import frozen

__all__ = ["INTERPRETERS", "RISKS", "RUNNERS", "WRAPPERS", "Risk", "is_risky", "program_name"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRAPPERS = _words("""
    ash at bash batch builtin bunx busybox bwrap caffeinate capsh catchsegv cgexec chpst chronic chroot chrt cmd
    command container coreutils cpulimit csh dash dbus-launch dbus-run-session doas docker dumb-init eatmydata
    elvish entr env exec expect fakechroot fakeroot faketime firejail fish flock gchroot gdb genv gnice gnohup gosu
    gstdbuf gtimeout gxargs heaptrack hyperfine ionice ksh linux32 linux64 lldb ltrace mksh nice nix-shell nohup npx
    nsenter nsjail nu numactl oksh parallel pipx pkexec podman posh prlimit proot proxychains proxychains4 pwsh
    rbash rlwrap rr run-parts runuser schroot screen script sem setarch setlock setpriv setsid sg sh softlimit ssh
    ssh-agent sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-nspawn systemd-run taskset tcsh time
    timelimit timeout tini tmux torify torsocks toybox trickle unbuffer unshare uvx valgrind watch watchexec xargs
    xonsh xterm xvfb-run yash zsh
""")
"""Programs whose arguments are a command. A rule that allows a bare program name doesn't look through them."""

INTERPRETERS = _words("""
    awk bun dc deno ed emacs ex gawk git gvim irb julia lua make mariadb mawk mysql nawk node nvim osascript perl php
    powershell psql python python3 R Rscript ruby rview rvim sed sqlite3 vi view vim vimdiff
""")
"""Programs whose arguments can be a program: `PROGRAM *` gets a warning."""


RUNNERS = {
    name: _words(subcommands)
    for name, subcommands in {
        "asdf": "exec",
        "bundle": "exec",
        "cargo": "watch",
        "conda": "run",
        "direnv": "exec",
        "git": "bisect submodule",
        "hatch": "run",
        "ip": "netns",
        "kubectl": "exec",
        "mamba": "run",
        "micromamba": "run",
        "mise": "exec watch x",
        "nix": "develop run shell",
        "nodenv": "exec",
        "npm": "exec x",
        "pdm": "run",
        "perf": "record stat trace",
        "pipenv": "run",
        "pixi": "exec run",
        "pnpm": "dlx exec",
        "poetry": "run",
        "pyenv": "exec",
        "rbenv": "exec",
        "rustup": "run",
        "uv": "run tool",
        "yarn": "dlx exec",
    }.items()
}
"""Programs with subcommands whose arguments are a command: a rule that denies looks through these."""


@frozen
class Risk:
    """The risky options and operands of one program."""

    exact: frozenset[str] = frozenset()
    """Options as they are written."""
    long: frozenset[str] = frozenset()
    """Names of `--` options; abbreviations count, since the programs accept them."""
    short: str = ""
    """Letters of `-` options, alone or inside a cluster such as `-uo`."""
    valued: str = ""
    """Letters that end a cluster because the rest is their value."""
    safe: frozenset[str] = frozenset()
    """Names of `--` options that only look like an abbreviation."""
    operands: int | None = None
    """The number of operands that are safe, None for any: a second one may be an output file."""
    bundled: bool = False
    """Whether the first operand may be options without a dash."""
    assigns: bool = False
    """Whether an operand that contains `=` sets a variable, whose value may be executed."""
    words: frozenset[str] = frozenset()
    """Operands that are followed by a command."""
    plus: bool = False
    """Whether words that begin with `+` are commands of the program, which may run other programs."""


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
    words: str = "",
    plus: bool = False,
) -> Risk:
    texts = _words(safe), operands, bundled, assigns, _words(words)
    return Risk(_words(exact), _words(long), short, valued, *texts, plus)


_MAKE = _risk(long="directory eval file include-dir makefile", short="CEfI", assigns=True)
_PAGER = _risk(
    long="LOG-FILE lesskey-content lesskey-file lesskey-src log-file", short="kOo", valued="bDhjPpTtxyz", plus=True
)
_VI = _risk(
    long="cmd listen remote remote-expr remote-send server startuptime", short="cEeilSsUuVWw", valued="qTt", plus=True
)


_HARMLESS = _words("""
    basename cat cmp comm cut df diff dirname du echo egrep fgrep grep head join ls md5sum nl od paste printf pwd
    realpath rev sha1sum sha256sum stat tac tail tr true wc which
""")

RISKS: dict[str, Risk] = {
    **dict.fromkeys(_HARMLESS, Risk()),
    **dict.fromkeys(_words("bzless bzmore less lzless more most pg xzless xzmore zless zmore zstdless"), _PAGER),
    **dict.fromkeys(_words("ex gvim nvim rview rvim vi view vim vimdiff"), _VI),
    "git": _risk(
        exact="-c -C",
        long="config-env contents exec exec-path ext-diff git-dir no-index open-files-in-pager output "
        "output-directory receive-pack super-prefix textconv upload-pack work-tree",
        short="O",
        valued="S",
        safe="text",
    ),
    "git archive": _risk(short="o"),
    "git bisect": _risk(words="run"),
    "git clone": _risk(long="config template", short="cu", valued="bjo"),
    "git difftool": _risk(long="extcmd tool", short="tx"),
    "git fast-export": _risk(long="export-marks"),
    "git filter-branch": _risk(
        long="commit-filter env-filter index-filter msg-filter parent-filter setup tag-name-filter tree-filter"
    ),
    "git format-patch": _risk(short="o", valued="v"),
    "git init": _risk(long="separate-git-dir template", valued="b"),
    "git ls-remote": _risk(short="u", valued="o"),
    "git mergetool": _risk(long="tool", short="t"),
    "git rebase": _risk(short="x", valued="CXs"),
    "git send-email": _risk(long="cc-cmd header-cmd sendmail-cmd smtp-server to-cmd"),
    "git submodule": _risk(words="foreach"),
    "pytest": _risk(
        long="basetemp confcutdir cov-config cov-report debug inifile junit-xml junitxml log-file override-ini pdbcls "
        "report-log resultlog rootdir",
        short="cop",
        valued="Wkmnr",
        safe="co cov log pdb",
    ),
    "find": _risk(exact="-delete -exec -execdir -files0-from -fls -fprint -fprint0 -fprintf -ok -okdir"),
    "fd": _risk(long="exec exec-batch", short="xX"),
    "rg": _risk(long="hostname-bin pre search-zip", short="z"),
    "emacs": _risk(
        long="directory eval execute find-file funcall init-directory insert load script user", short="flLx"
    ),
    "nc": _risk(long="exec lua-exec sh-exec", short="ce"),
    "ncat": _risk(long="exec lua-exec sh-exec", short="ce"),
    "scp": _risk(short="DFoS", valued="ciJlPX"),
    "sftp": _risk(short="bDFoSs", valued="BciJlPRX"),
    "split": _risk(long="filter", valued="abClnt"),
    "tcpdump": _risk(short="wz", valued="BCcDEFGijMrsTVy"),
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
"""Risks by program. An empty entry means that the program has no risky option."""

_RISKY_WORDS = _words("""
    cmd command config delete editor eval exec execute fix hook in-place inplace loader out outdir outfile output pager
    plugin plugins preload preprocessor program require rulesdir script shell write
""")
_RISKY_ENDS = ("cmd", "command", "exec", "executable", "plugin", "script", "tool", "wrapper")
_NAME = re.compile(r"--?([A-Za-z][A-Za-z0-9_-]*)")


def program_name(program: str, words: Iterable[str]) -> set[str]:
    """Return the keys of a command in `RISKS`: its program, and the program with its subcommand.

    Example:
        >>> sorted(program_name("git", ["git", "rebase", "main"]))
        ['git', 'git rebase']
    """
    return {program, *(name for word in words if (name := f"{program} {word}") in RISKS)}


def is_risky(programs: Iterable[str], token: str) -> bool:
    """Whether a word of a command is an option that a `*` must not cover.

    Example:
        >>> is_risky(["sort"], "-uo"), is_risky(["sort"], "--outp=x"), is_risky(["sort"], "-u")
        (True, True, False)
    """
    if not token.startswith("-"):
        risks = [RISKS[program] for program in programs if program in RISKS]
        return any(
            token in risk.words or (risk.assigns and "=" in token) or (risk.plus and token.startswith("+"))
            for risk in risks
        )
    return len(token) > 1 and any(_is_risky(RISKS.get(program), token) for program in programs)


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
