"""The programs that run other programs: their arguments are a command, or a program text.

A rule that denies looks for programs in the words of these. A rule whose `*` stands for such a command gets a warning.
"""

from __future__ import annotations

__all__ = ["INTERPRETERS", "RUNNERS", "WRAPPERS"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRAPPERS = _words("""
    ash at bash batch builtin bunx busybox bwrap caffeinate capsh catchsegv cgexec chpst chronic chroot chrt cmd
    command container coreutils cpulimit csh dash dbus-launch dbus-run-session doas dumb-init eatmydata
    elvish entr env exec expect fakechroot fakeroot faketime firejail fish flock gchroot gdb genv gnice gnohup gosu
    gstdbuf gtimeout gxargs heaptrack hyperfine ionice ksh linux32 linux64 lldb ltrace mksh nice nix-shell nohup npx
    nsenter nsjail nu numactl oksh parallel pipx pkexec posh prlimit proot proxychains proxychains4 pwsh
    rbash rlwrap rr run-parts runuser schroot screen script sem setarch setlock setpriv setsid sg sh softlimit ssh
    ssh-agent sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-nspawn systemd-run taskset tcsh time
    timelimit timeout tini tmux torify torsocks toybox trickle unbuffer unshare uvx valgrind watch watchexec xargs
    xonsh xterm xvfb-run yash zsh
""")
"""Programs whose arguments are a command."""

INTERPRETERS = _words("""
    awk bun dc deno ed emacs ex gawk git gvim irb julia lua make mariadb mawk mysql nawk node nvim osascript perl php
    powershell psql python python3 R Rscript ruby rview rvim sed sqlite3 vi view vim vimdiff
""")
"""Programs whose arguments can be a program: `PROGRAM *` gets a warning."""


RUNNERS = {
    name: _words(subcommands)
    for name, subcommands in {
        "asdf": "exec",
        "bun": "x",
        "bundle": "exec",
        "cargo": "watch",
        "conda": "run",
        "deno": "run",
        "direnv": "exec",
        "docker": "compose exec run",
        "docker-compose": "exec run",
        "git": "bisect submodule",
        "go": "run",
        "hatch": "run",
        "ip": "netns",
        "kubectl": "debug exec",
        "mamba": "run",
        "micromamba": "run",
        "mise": "exec watch x",
        "nix": "develop run shell",
        "nodenv": "exec",
        "npm": "exec x",
        "oc": "debug exec",
        "pdm": "run",
        "perf": "record stat trace",
        "pipenv": "run",
        "pixi": "exec run",
        "podman": "exec run",
        "pnpm": "dlx exec",
        "poetry": "run",
        "pyenv": "exec",
        "rbenv": "exec",
        "rustup": "run",
        "rye": "run",
        "uv": "run tool",
        "yarn": "dlx exec",
    }.items()
}
"""Programs with subcommands whose arguments are a command."""
