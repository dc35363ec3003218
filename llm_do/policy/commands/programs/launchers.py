"""The grammar of programs that run another one; `llm_do.policy.commands.grammar` reads it."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
time: launch
    flags -pv
nice, gnice: launch ; digits
    text -n --adjustment
ionice: launch
    flags -t
    text -cn --class --classdata
nohup, setsid, command, eatmydata, unbuffer, chronic, caffeinate: launch
timeout, gtimeout: text launch
    flags -v --preserve-status --foreground --verbose
    text -ks --kill-after --signal
stdbuf, gstdbuf: launch
    text -ioe --input --output --error
env: launch
    flags -i0 --ignore-environment --null
    text -u --unset
watch: launch
    flags -dtbexgc
    text -n --interval
strace, ltrace: launch
    flags -fqcCtTvyd
    text -ePs
sudo, doas: launch
    flags -nkES
taskset, chrt: text launch
    flags -apc
flock: path launch
    flags -nsxueo
    text -wE
entr, hyperfine, xvfb-run, tini, dumb-init: launch
conda, mamba, micromamba: sub
conda run, mamba run, micromamba run: launch
    text -n --name
conda list, conda info, conda env, conda search: text*
    flags --json -e
    text -n --name
direnv, asdf, mise, rbenv, pyenv, nodenv: sub
asdf exec, rbenv exec, pyenv exec, nodenv exec, mise exec, mise x: launch
"""
