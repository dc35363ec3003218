"""The grammar of git's subcommands; `llm_do.policy.commands.grammar` reads it.

A subcommand that only reads runs no program, writes no file and reads only the repository. Where versions of git differ
about whether an option takes the next word, it is listed as `maybe`, so that the word is read as an operand.
"""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
git: sub
    flags -P --no-pager --no-optional-locks --literal-pathspecs --version
@git-diff: ref*
    flags -puswbRaz --patch --no-patch --raw --numstat --shortstat --summary --name-only --name-status
    flags --compact-summary --minimal --patience --histogram --no-renames --full-index --binary --text
    flags --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --function-context
    flags --no-color --no-ext-diff --no-textconv --no-prefix --pickaxe-all --pickaxe-regex --exit-code --quiet
    flags --cached --staged --merge-base --ita-invisible-in-index --check --no-indent-heuristic --indent-heuristic
    text -SG
    maybe -U --unified --diff-filter --diff-algorithm --inter-hunk-context --word-diff-regex --src-prefix --dst-prefix
    maybe --line-prefix --anchored -MCB --stat --abbrev --find-renames --find-copies --color --word-diff --dirstat
    maybe --relative --color-words --color-moved --break-rewrites
@git-log: ref* ; digits
    flags -imEFPg --oneline --graph --all --branches --tags --remotes --merges --no-merges --first-parent --reverse
    flags --decorate --no-decorate --follow --full-history --topo-order --date-order --author-date-order --left-right
    flags --cherry-pick --cherry --cherry-mark --boundary --simplify-merges --simplify-by-decoration --ancestry-path
    flags --parents --children --no-walk --walk-reflogs --invert-grep --all-match --regexp-ignore-case
    flags --extended-regexp --fixed-strings --perl-regexp --basic-regexp --source --use-mailmap --no-mailmap
    flags --abbrev-commit --no-abbrev-commit --relative-date --notes --no-notes --log-size --no-expand-tabs --cc
    flags --root --clear-decorations --dense --sparse
    text -n --max-count --skip --since --after --until --before --author --committer --grep --grep-reflog --date
    text --encoding --decorate-refs --decorate-refs-exclude --exclude
    maybe --max-parents --min-parents --format --pretty --decorate --branches --tags --remotes --glob --no-walk
    maybe --expand-tabs --notes
    lines -L
git status: path* ; reads
    flags -sbz --short --branch --show-stash --long --no-renames --null --ahead-behind --no-ahead-behind --no-column
    flags --verbose -v
    maybe -u --porcelain --untracked-files --ignored --find-renames --column
git log, git show, git reflog show, git whatchanged: ref* ; reads digits
    use @git-diff @git-log
git diff: ref* ; reads
    use @git-diff
git branch: ref* ; bare
    flags -alrviqf --all --list --remotes --verbose --ignore-case --show-current --no-color --no-column --quiet --track
    flags --no-track --no-abbrev --contains --no-contains --merged --no-merged --points-at
    lists -l --list --contains --no-contains --merged --no-merged --points-at
    changes -u --set-upstream-to --track
    text --format --sort -u --set-upstream-to
    maybe --color --column --abbrev
git tag: ref* ; bare
    flags -lai --list --annotate --ignore-case --no-column --contains --no-contains --merged --no-merged --points-at
    lists -l --list --contains --no-contains --merged --no-merged --points-at
    changes -am --annotate --message
    text -m --message --sort --format
    maybe -n --column --color
git rev-parse: ref* ; reads
    flags -q --show-toplevel --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-bare-repository
    flags --is-inside-git-dir --is-shallow-repository --show-prefix --show-cdup --verify --quiet --symbolic
    flags --symbolic-full-name --all --branches --tags --remotes --revs-only --no-revs --flags --no-flags
    maybe --abbrev-ref --short
    text --path-format
git rev-list: ref* ; reads digits
    use @git-log
    flags --count --objects --no-object-names --pretty --header --timestamp
git blame, git annotate: ref* ; reads
    flags -bclfnpstwe --line-porcelain --porcelain --incremental --root --show-stats --show-name --show-number
    flags --show-email --first-parent
    text --since --date --abbrev
    lines -L
    maybe -MC
git ls-files: path* ; reads
    flags -cdikmostvzfu --cached --deleted --modified --others --ignored --stage --unmerged --killed --directory
    flags --no-empty-directory --eol --full-name --error-unmatch --exclude-standard --deduplicate
    text -x --exclude --format
    maybe --abbrev
git ls-tree: ref* ; reads
    flags -drtlz --long --name-only --name-status --object-only --full-name --full-tree
    text --format
    maybe --abbrev
git grep: text ref* ; reads digits
    flags -aIiwvhHEGPFnlLcqpWrzo --cached --untracked --text --ignore-case --word-regexp --invert-match --full-name
    flags --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches
    flags --name-only --files-without-match --null --only-matching --count --break --heading --show-function
    flags --function-context --and --or --not --all-match --quiet --no-color --exclude-standard --no-exclude-standard
    text -ABCem --after-context --before-context --context --max-depth --max-count --threads
    path -f
    maybe --color
    first -ef
git describe: ref* ; reads
    flags --all --tags --contains --always --long --first-parent --exact-match --debug
    text --abbrev --candidates --match --exclude
    maybe --dirty --broken
git shortlog: ref* ; reads digits
    flags -nsec --numbered --summary --email --committer --all --no-merges --merges
    text --since --until --author --grep --format --group
    maybe -w
git cat-file: text ref ; reads
    flags -ptse --batch-all-objects
git show-ref: text* ; reads
    flags -dhsq --head --heads --branches --tags --dereference --verify --quiet
    maybe --hash --abbrev
git for-each-ref: text* ; reads
    flags --ignore-case
    text --format --sort --count --points-at --contains --no-contains --merged --no-merged --exclude
git name-rev: ref* ; reads
    flags --tags --all --name-only --no-undefined --always
    text --refs --exclude
git merge-base: ref* ; reads
    flags -a --all --octopus --independent --is-ancestor --fork-point
git diff-tree: ref* ; reads
    use @git-diff
    flags -rtmc --cc --root --no-commit-id --stdin
git diff-files, git diff-index: ref* ; reads
    use @git-diff
git check-ignore: path* ; reads
    flags -qvnz --quiet --verbose --non-matching --no-index
git check-attr: text* ; reads
    flags -a --all --cached
git count-objects: none ; reads
    flags -vH --verbose --human-readable
git var, git version: text*
git reflog: none ; sub reads digits
    use @git-diff @git-log
git stash: none ; sub
    flags -kupq --keep-index --include-untracked --patch --quiet
    text -m --message
git stash list: none ; reads digits
    use @git-diff @git-log
git stash show: ref* ; reads
    use @git-diff
    flags --include-untracked --only-untracked
git stash push: path*
    flags -kupq --keep-index --include-untracked --patch --quiet
    text -m --message
git stash pop, git stash apply, git stash drop, git stash branch: ref*
    flags -q --index --quiet
git remote: none ; sub reads
    flags -v --verbose
git remote get-url: text* ; reads
    flags --all --push
git remote show, git remote prune, git remote update: text*
    flags -n
git worktree: none ; sub
git worktree list: none ; reads
    flags -vz --verbose --porcelain
git submodule: none ; sub
    flags -q --quiet
git submodule status, git submodule summary, git submodule init, git submodule sync: path*
    flags --recursive --cached
git submodule update: path*
    flags -q --quiet --init --recursive --no-fetch --single-branch
    text --depth --jobs -j
git config: text* ; listing
    lists -l --list --get --get-all
    flags -lz --list --get --get-all --local --show-origin --show-scope --name-only
git add: path*
    flags -nvAuNp --dry-run --verbose --all --update --intent-to-add --ignore-removal --refresh --patch --renormalize
    text --chmod
git commit: path*
    flags -aqvnspez --all --quiet --verbose --signoff --no-edit --amend --allow-empty --dry-run --short --branch
    flags --porcelain --no-status --status --include --only --reset-author --allow-empty-message --no-gpg-sign
    text -m --message --author --date --fixup --squash --trailer --cleanup -C --reuse-message
    path -F --file
    maybe -u --untracked-files
git checkout, git switch: ref*
    flags -qtdbBcm --quiet --track --no-track --detach --ours --theirs --merge --progress --guess --no-guess --overlay
    text --orphan --conflict --create
git restore: ref*
    flags -SWqp --staged --worktree --quiet --ours --theirs --progress
    text -s --source
git reset: ref*
    flags -qNp --quiet --soft --mixed --keep
git merge: ref*
    flags -neqvS --no-commit --commit --no-edit --edit --ff --no-ff --ff-only --squash --no-squash --stat --no-stat
    flags --abort --continue --quit --signoff --quiet --verbose --progress
    text -msX --message --strategy --strategy-option
git rebase: ref*
    flags -qvnfi --continue --abort --skip --quit --quiet --verbose --autostash --no-autostash --autosquash --root
    flags --keep-base --stat --no-stat --no-ff --reapply-cherry-picks --update-refs --show-current-patch --keep-empty
    text -CXs --onto --strategy --strategy-option --empty
git cherry-pick, git revert: ref*
    flags -enxs --edit --no-edit --no-commit --signoff --continue --abort --skip --quit --ff --allow-empty
    text -mX --mainline --strategy --strategy-option
git fetch: any*
    flags -apqvtnP4 --all --append --prune --prune-tags --quiet --verbose --tags --no-tags --dry-run --unshallow
    flags --progress --atomic --force-with-lease --no-recurse-submodules
    text -jo --depth --deepen --shallow-since --jobs --filter --refmap
git pull: any*
    flags -apqvtn --all --prune --quiet --verbose --ff --no-ff --ff-only --no-rebase --autostash --tags --no-edit
    flags --stat --no-commit --squash --progress
    text -sXj --depth --strategy --jobs
    maybe -r --rebase
git push: refspec*
    flags -unqv --set-upstream --all --tags --follow-tags --dry-run --quiet --verbose --porcelain --progress --atomic
    flags --no-verify --thin --no-force-if-includes --prune
    text -o --push-option
git clone: any*
    flags -lsqvn --quiet --verbose --progress --no-checkout --bare --mirror --single-branch --no-single-branch
    flags --no-tags --shallow-submodules --recurse-submodules --recursive --sparse --local --no-hardlinks
    text -bjo --branch --depth --origin --jobs --filter --shallow-since
git init: path
    flags -q --quiet --bare
    text -b --initial-branch
git rm: path*
    flags -fnrq --force --dry-run --cached --quiet --ignore-unmatch
git mv: path*
    flags -fknv --force --dry-run --verbose
git clean: path*
    flags -ndq --dry-run --quiet
    text -e --exclude
git bisect: none ; sub
git bisect start, git bisect good, git bisect bad, git bisect skip, git bisect reset, git bisect new: ref*
    flags --no-checkout --first-parent
git bisect old: ref*
    flags --no-checkout --first-parent
git bisect run, git submodule foreach: launch
git bisect log, git bisect next, git bisect visualize: none
git apply: path*
    flags -vRN3 --check --stat --numstat --summary --cached --index --3way --reverse --verbose --recount
    text -pC --whitespace --exclude --include
git am: path*
    flags -s3kq --signoff --3way --keep --quiet --continue --skip --abort --quit
git notes: text*
    flags -f
    text -m
git archive: ref*
    flags -lv --list --verbose -0123456789
    text --format --prefix
git ls-remote: any*
    flags -thq --tags --heads --branches --refs --quiet --exit-code --symref --get-url
    text -o --sort
git format-patch: ref* ; digits
    flags -nNksp --stdout --numbered --no-numbered --signoff --cover-letter
    text -v --subject-prefix --suffix --start-number
git range-diff: ref*
    flags --no-color --no-dual-color
git cherry: ref* ; reads
    flags -v --verbose
    maybe --abbrev
git gc, git prune, git fsck, git maintenance: text*
    flags --auto --quiet --full --prune -q
git difftool, git mergetool: ref*
    flags -ygd --no-prompt --gui --no-gui --dir-diff
git filter-branch, git send-email, git fast-export: ref*
    flags --all --dry-run --quiet
git help: text*
"""
