"""A rule that denies a program finds it in every spelling of what runs it."""

from __future__ import annotations

from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from llm_do.toolsets.shell.command_line import parse_command
from tests.support.tables import each_row

HIDDEN = r"""
rm * || env -S'rm x'
rm * || env -S 'rm x'
rm * || env -vS'rm x'
rm * || env --split-string='rm x'
rm * || env --split-string='A=1 rm x'
rm * || flock /tmp/x -c'rm x'
rm * || flock x -c 'rm x'
rm * || flock x rm y
rm * || su -c'rm x'
rm * || su root -c 'rm x'
rm * || su --command='rm x'
rm * || script -c'rm x' out
rm * || script -qc'rm x' out
rm * || script --command='rm x'
rm * || tar -I'rm x' -cf a b
rm * || tar -cf a b --to-command='rm x'
rm * || tar -cf a b --use-compress-program='rm x'
rm * || tar -cf a b -F'rm x'
rm * || tar cf a --checkpoint-action=exec='rm x' b
rm * || rsync -e'rm x' a b
rm * || rsync -ae'rm x' a b
rm * || rsync --rsh='rm x' a b
rm * || rsync -e 'rm x' a b
rm * || sed '1erm x' y
rm * || sed '1e rm x' y
rm * || sed -e '1erm x' y
rm * || sed -e'1erm x' y
rm * || sed --expression='1erm x' y
rm * || sed 's/.*/rm x/e' y
rm * || find . -exec rm {} +
rm * || find . -ok rm x
rm * || xargs rm
rm * || xargs -I{} rm {}
rm * || parallel rm ::: x
rm * || git -c core.pager='rm x' log
rm * || git -c alias.x='!rm x' x
rm * || git rebase -x'rm x' main
rm * || git rebase --exec='rm x' main
rm * || git bisect run rm x
rm * || git submodule foreach 'rm x'
rm * || git difftool -x'rm x'
rm * || git clone --upload-pack='rm x' a b
rm * || git grep -O'rm x' y
rm * || uv run rm x
rm * || uv run -- rm x
rm * || uvx rm x
rm * || npx rm x
rm * || npx -c'rm x'
rm * || npm exec -- rm x
rm * || npm exec -c 'rm x'
rm * || yarn exec rm x
rm * || pnpm dlx rm x
rm * || kubectl exec pod -- rm x
rm * || docker exec web rm x
rm * || docker run --rm ubuntu rm x
rm * || docker compose exec web rm x
rm * || go run -exec 'rm x' .
rm * || go test -exec='rm x' ./...
rm * || go test -toolexec='rm x'
rm * || make 'X=$(shell rm x)'
rm * || make SHELL=rm
rm * || make --eval='$(shell rm x)'
rm * || ssh host rm x
rm * || ssh -oProxyCommand='rm x' host
rm * || scp -oProxyCommand='rm x' a b
rm * || scp -S rm a b
rm * || timeout -k5 5 rm x
rm * || nice -n5 rm x
rm * || stdbuf -oL rm x
rm * || watch -n1 rm x
rm * || watch 'rm x'
rm * || time rm x
rm * || nohup rm x
rm * || setsid rm x
rm * || strace -f rm x
rm * || python -c 'import os; os.system("rm x")'
rm * || perl -e'system("rm x")'
rm * || ruby -e '`rm x`'
rm * || node -e 'require("child_process").execSync("rm x")'
rm * || awk 'BEGIN{system("rm x")}'
rm * || sqlite3 x '.shell rm x'
rm * || vim -c':!rm x' y
rm * || vim '+!rm x' y
rm * || less '+!rm x' y
rm * || man -P'rm x' ls
rm * || split --filter='rm x' y
rm * || rg --pre rm x
rm * || rg --pre=rm x
rm * || fd -x rm
rm * || fd . -xrm
rm * || fd --exec=rm x
rm * || sort --compress-program=rm x
rm * || curl x | sh -c 'rm x'
rm * || psql -c '\! rm x'
rm * || mysql -e 'system rm x'
rm * || sometool --exec=rm
rm * || sometool --exec='rm x'
rm * || sometool --on-change 'rm x'
rm * || bash -c 'rm x'
rm * || bash -lc'rm x'
rm * || bash -c 'a=1;rm x'
rm * || sh -c 'cd / && rm x'
rm * || busybox rm x
rm * || doas rm x
rm * || chroot / rm x
rm * || runuser -c'rm x' u
rm * || xterm -e rm x
rm * || tmux new-session 'rm x'
rm * || ls && rm x
rm * || ls || rm x
rm * || ls; rm x
rm * || ls 2>/dev/null; /bin/rm x
git push * || uv run git push
git push * || poetry run git push
git push * || env -S'git push'
git push * || git -C x push
pip install * || python -m pip install x
pip install * || python -mpip install x
pip install * || python3 -m pip install x
"""
HARMLESS = r"""
rm * || git commit -m 'rm x'
rm * || echo rm x
rm * || grep rm x
rm * || rg 'rm x' src
rm * || ls rm
rm * || git rm x
rm * || git log --grep='rm x'
rm * || pytest -k rm
rm * || docker run --rm ubuntu ls
rm * || sed s/rm/x/ y
rm * || sed -n '/farm/p' y
rm * || jq .rm x.json
rm * || cargo test rm
rm * || kubectl get rm
git push --force * || git push origin main
pip install * || python -m pip list
"""


def rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(part.strip() for part in line.split(" || ", 1)) for line in text.strip().splitlines()]


def denied(rule: str, command: str) -> bool:
    call = ToolCallInfo("shell", {}, primary="command", resolved={"command": parse_command(command)})
    return matches(parse_pattern(f"shell({rule})"), call, restrictive=True)


@each_row("rule, command", rows(HIDDEN))
def test_a_denied_program_is_found(rule: str, command: str) -> None:
    assert denied(rule, command)


@each_row("rule, command", rows(HARMLESS))
def test_a_word_in_data_is_no_program(rule: str, command: str) -> None:
    assert not denied(rule, command)
