"""The grammar of programs that list, search, compare and print files; `llm_do.policy.commands.grammar` reads it."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
ls: path* ; reads
    flags -aAbBcCdfFgGhiklmnopqQrRsStuUvxXZ1 --all --almost-all --author --escape --ignore-backups --directory
    flags --file-type --full-time --group-directories-first --no-group --human-readable --si --inode --kibibytes
    flags --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name --reverse --recursive
    flags --size --zero --context
    follow -LH --dereference
    text -ITw --block-size --format --hide --ignore --indicator-style --quoting-style --sort --time --time-style
    text --tabsize --width
    maybe --color --hyperlink --classify
cat, tac, rev: path* ; reads
    flags -AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting
nl: path* ; reads
    flags -p
    text -bdfhilnsvw --body-numbering --number-format --number-separator --number-width --starting-line-number
head: path* ; reads digits
    flags -qvz --quiet --silent --verbose --zero-terminated
    text -nc --lines --bytes
tail: path* ; reads digits
    flags -qvz --quiet --silent --verbose --zero-terminated
    text -nc --lines --bytes
wc: path* ; reads
    flags -clLmw --bytes --chars --lines --words --max-line-length
    text --total
grep, egrep, fgrep: text path* ; reads digits
    flags -EFGPivwxyzZcLloqshHnTUabrI --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case
    flags --no-ignore-case --invert-match --word-regexp --line-regexp --count --files-without-match
    flags --files-with-matches --only-matching --quiet --silent --no-messages --with-filename --no-filename
    flags --line-number --initial-tab --null --text --recursive --null-data --byte-offset --line-buffered --version
    follow -R --dereference-recursive
    text -emABCdD --regexp --max-count --after-context --before-context --context --binary-files --devices
    text --directories --exclude --exclude-dir --include --label --group-separator
    path -f --file --exclude-from
    maybe --color --colour
    first -ef --regexp --file
rg: text path* ; reads digits
    flags -abchHiIlnNopPqsSuUvwxF0. --text --byte-offset --case-sensitive --column --count --count-matches --crlf
    flags --debug --files --files-with-matches --files-without-match --fixed-strings --heading --no-heading --hidden
    flags --ignore-case --invert-match --json --line-buffered --line-number --no-line-number --line-regexp --multiline
    flags --multiline-dotall --no-config --no-filename --with-filename --no-ignore --no-ignore-vcs --no-messages
    flags --null --null-data --one-file-system --only-matching --passthru --pcre2 --pretty --quiet --smart-case
    flags --stats --trim --unrestricted --vimgrep --word-regexp --type-list --version --no-ignore-parent
    follow -L --follow
    text -AgBCeEjmMrtT --after-context --before-context --color --colors --context --encoding --engine --glob --iglob
    text --max-columns --max-count --max-depth --max-filesize --regexp --replace --sort --sortr --threads --type
    text --type-not --type-add --field-context-separator --field-match-separator --context-separator
    path -f --file --ignore-file
    first -ef --regexp --file --files --type-list
ag, ack: text path* ; digits
    flags -ailLnqQsSvwcH --all-types --ignore-case --files-with-matches --hidden --literal --smart-case --word-regexp
    flags --column --count --nocolor --nogroup --noheading --numbers --nonumbers --heading --group
    follow -f --follow
    text -ABCGm --after --before --context --depth --ignore --ignore-dir --type
find: path* ; reads expression
    flags ! ( ) , -P -O1 -O2 -O3 -a -and -d -daystart -depth -empty -executable -false -ignore_readdir_race -ls -mount
    flags -nogroup -noignore_readdir_race -noleaf -not -nouser -nowarn -o -or -print -print0 -prune -quit -readable
    flags -true -warn -writable -xdev
    follow -L -H -follow
    text -amin -atime -cmin -context -ctime -fstype -gid -group -iname -inum -ipath -iregex -iwholename -links
    text -maxdepth -mindepth -mmin -mtime -name -newermt -path -perm -printf -regex -regextype -size -type -uid -used
    text -user -wholename -xtype
    path -anewer -cnewer -newer -samefile
fd, fdfind: text path* ; reads
    flags -HIsigalpF0u1q --hidden --no-ignore --no-ignore-vcs --case-sensitive --ignore-case --glob --regex
    flags --fixed-strings --absolute-path --list-details --full-path --print0 --unrestricted --quiet --prune
    follow -L --follow
    text -dtecESj --max-depth --min-depth --exact-depth --type --extension --color --exclude --size --changed-within
    text --changed-before --owner --max-results --threads --format --and
tree: path* ; reads
    flags -adfixqNQpughDFsrtcUvACSJX --dirsfirst --filesfirst --noreport --du --si --inodes --device --prune
    flags --gitignore --ignore-case --matchdirs --metafirst --hintro
    follow -l
    text -LPI --filelimit --charset --timefmt --sort
sort: path* ; reads
    flags -bdfgiMhnRrVcCmsuz --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort
    flags --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --version-sort
    flags --merge --stable --unique --zero-terminated --debug
    text -kt --key --field-separator --sort
    maybe --check
uniq: path write* ; reads
    flags -cdDiuz --count --repeated --ignore-case --unique --zero-terminated
    text -fsw --skip-fields --skip-chars --check-chars
    maybe --all-repeated --group
cut: path* ; reads
    flags -nsz --complement --only-delimited --zero-terminated
    text -bcdf --bytes --characters --delimiter --fields --output-delimiter
tr: text* ; reads
    flags -cCdst --complement --delete --squeeze-repeats --truncate-set1
column: path* ; reads
    flags -teLRnx --table --fillrows --keep-empty-lines
    text -csoNHl --separator --output-separator --output-width --table-columns
comm: path* ; reads
    flags -123iz --check-order --nocheck-order --total --zero-terminated
    text --output-delimiter
join: path* ; reads
    flags -iz --ignore-case --header --check-order --nocheck-order --zero-terminated
    text -12aejotv
paste: path* ; reads
    flags -sz --serial --zero-terminated
    text -d --delimiters
fold, fmt: path* ; reads digits
    flags -bsctu --bytes --spaces
    text -wgp --width
expand, unexpand: path* ; reads digits
    flags -ai --all --initial --first-only
    text -t --tabs
diff: path* ; reads digits
    flags -qsyepnNaibwEZBtTdu --brief --report-identical-files --side-by-side --unified --new-file --text
    flags --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-trailing-space
    flags --minimal --suppress-common-lines --strip-trailing-cr --expand-tabs --left-column --ignore-tab-expansion
    flags --normal --speed-large-files --no-dereference
    follow -r --recursive
    nofollow --no-dereference
    text -UCWxIFLS --width --exclude --ignore-matching-lines --label --show-function-line --tabsize --starting-file
    maybe --color --unified --context
cmp: path path text* ; reads
    flags -bls --print-bytes --verbose --quiet --silent
    text -in --ignore-initial --bytes
sdiff, diff3: path* ; reads
    flags -bislWwBaAeExX3mT --text --ignore-case --suppress-common-lines
    text -w --width
stat: path* ; reads
    flags -ft --file-system --terse
    follow -L --dereference
    text -c --format --printf --cached
file: path* ; reads
    flags -bhiklLNpr0 --brief --mime --mime-type --mime-encoding --no-dereference --keep-going --extension
    flags --dereference
    text -F --separator -e --exclude
du: path* ; reads
    flags -0abchkmsSx --all --apparent-size --bytes --total --human-readable --summarize --separate-dirs --si
    flags --one-file-system --null --inodes
    follow -LDH --dereference --dereference-args
    text -dBt --max-depth --block-size --threshold --exclude --time-style
    maybe --time
df: path* ; reads
    flags -ahHiklPTv --all --human-readable --si --inodes --local --portability --print-type --total
    text -Btx --block-size --type --exclude-type
pwd: none ; reads
    flags -LP --logical --physical
realpath, readlink: path* ; reads
    flags -emfnqszLP --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --no-symlinks
    text --relative-to --relative-base
basename, dirname: text* ; reads
    flags -az --multiple --zero
    text -s --suffix
echo, printf: text* ; reads words
true, false, whoami, nproc, arch, tty, uptime, logname: none ; reads
    flags --help --version
test: any* ; reads single
    flags -f -d -e -s -r -x -L -h -n -z -a -o -eq -ne -lt -le -gt -ge -nt -ot -ef
uname: none ; reads
    flags -asnrvmpio --all --kernel-name --machine --operating-system
hostname: none ; reads
id, groups: text* ; reads
    flags -gGnruz
date: format ; reads
    flags -uIR --utc --universal --rfc-email
    text -d --date --rfc-3339
    path -r --reference
    maybe --iso-8601
seq: text* ; reads
    flags -w --equal-width
    text -fst --format --separator
sleep: text* ; reads
yes: text* ; reads words
base64: path* ; reads
    flags -di --decode --ignore-garbage
    text -w --wrap
which, type: text* ; reads
    flags -as --all
md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, cksum, sum: path* ; reads
    flags -btz --binary --text --tag --zero
od: path* ; reads
    flags -abcdfhilosxv --output-duplicates
    text -AjNStw --address-radix --skip-bytes --read-bytes --format --width --endian
hexdump: path* ; reads
    flags -bcCdoxv
    text -ns
xxd: path write* ; reads
    flags -abCeEipu
    text -cglnos
strings: path* ; reads
    flags -a --all
    text -nte --bytes --radix --encoding
jq, gojq, jaq: jq path* ; reads
    flags -crRjaSCMnse --compact-output --raw-output --raw-input --join-output --ascii-output --sort-keys
    flags --color-output --monochrome-output --null-input --slurp --exit-status --tab --seq --stream --unbuffered
    flags --raw-output0 --args --jsonargs
    text --indent
    pair --arg --argjson
    pair-path --slurpfile --rawfile
    path -f --from-file
yq: jq path* ; reads
    flags -PnrjMCeN --prettyPrint --null-input --unwrapScalar --tojson --no-colors --colors --exit-status --no-doc
    text -opI --output-format --input-format --indent
xmllint: path* ; reads
    flags --format --noout --nonet --pretty --recover --noblanks
    text --xpath --encode
sed: sed path* ; reads
    flags -nErsuz --quiet --silent --regexp-extended --null-data --separate --unbuffered --posix --sandbox --debug
    sed -e --expression
    text -l --line-length
    first -e --expression
awk, gawk, mawk, nawk: awk path* ; reads
    flags --posix --traditional --re-interval --csv
    text -F --field-separator
    choice -v [A-Za-z_]\w*=.*
less, more, most, pg, zless, zmore, bzless, bzmore, xzless, xzmore, lzless, zstdless: path* ; plus
    flags -aABcCdeEfFgGiIJKmMnNqQrRsSuUVwWX~ --quit-if-one-screen --no-init --chop-long-lines --RAW-CONTROL-CHARS
    flags --raw-control-chars --LINE-NUMBERS --line-numbers --ignore-case --squeeze-blank-lines --version
    text -bDhjPpxyz --pattern --tabs
ex, vi, vim, view, vimdiff, nvim, gvim, rview, rvim: path* ; plus
    flags -bdfHhMmnNoOpRvyZ
emacs: path* ; plus
    flags -Qq --quick --batch --no-window-system
man: text*
    flags -afkwK --all --whatis --apropos --where --path
    text -Ls --locale --sections
touch: path*
    flags -acm --no-create
    text -dt --date
    path -r --reference
mkdir: path*
    flags -pv --parents --verbose
    text -m --mode
rmdir: path*
    flags -pv --parents --verbose --ignore-fail-on-non-empty
cp: path*
    flags -abfiluvnpPrRTx --archive --force --interactive --link --no-clobber --recursive --update --verbose
    flags --no-target-directory --no-dereference --parents
    follow -LH --dereference
    nofollow -P --no-dereference
    path -t --target-directory
    maybe --preserve --backup
mv: path*
    flags -finuvT --force --interactive --no-clobber --update --verbose --no-target-directory
rm: path*
    flags -dfiIrRv --force --recursive --dir --verbose
    maybe --interactive
ln: path*
    flags -finrsTv --force --interactive --no-dereference --relative --symbolic --verbose
    path -t --target-directory
chmod, chown: text path*
    flags -cfRv --changes --quiet --silent --recursive --verbose
tee: path*
    flags -ai --append --ignore-interrupts
tar: local* ; reads bundled
    flags -tvzjJahkpOPW --list --verbose --gzip --bzip2 --xz --zstd --auto-compress --totals --full-time
    flags --numeric-owner --utc --show-stored-names --wildcards --anchored
    local -f --file
    text --exclude --strip-components
zip: path*
    flags -0123456789jqruvy
    text -xi
unzip: path text*
    flags -lvtZqp
split: path text*
    flags -dxeu --numeric-suffixes --elide-empty-files --verbose
    text -abClnt --suffix-length --bytes --line-bytes --lines --number --separator --additional-suffix
csplit: path text*
    flags -ksz
    text -bfn
patch: path*
    flags -bEflNRsZ --dry-run --forward --force --silent --verbose --reverse
    text -pF --strip --fuzz
    path -i --input
ps: processes*
    flags -aAcdefFHjlLMmNTwxyZ --forest --headers --no-headers --everyone
    text -CGgopqstUu --format --sort --pid --ppid --user --cols
top: none
    flags -bcHSs
    text -dnpuUwo
kill, pkill, pgrep, pidof, killall: text* ; digits
    flags -lLfxvnoac
    text -s --signal
lsof: path*
    flags -nPtlR
    text -iupac
xargs: launch
    flags -0rtx --null --no-run-if-empty --verbose
    text -dEILnPs --delimiter --max-args --max-procs --max-lines --replace
"""
