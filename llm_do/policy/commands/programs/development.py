"""The grammar of test runners, linters, compilers and package managers; `llm_do.policy.commands.grammar` reads it."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
python, pypy: script text*
    flags -bBdEhiIOPqsuvVx --version --help
    text -WX --check-hash-based-pycs
    launch -m
pytest, py.test: any* ; response
    flags -qvxsl --exitfirst --quiet --verbose --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise
    flags --stepwise-skip --co --collect-only --pdb --no-header --no-summary --fixtures --fixtures-per-test --markers
    flags --showlocals --setup-only --setup-show --setup-plan --strict-markers --strict-config --strict --pyargs
    flags --no-cov --no-cov-on-fail --cov-branch --cov-append --disable-warnings --version --help -h --runxfail
    flags --full-trace --disable-pytest-warnings --force-short-summary --no-showlocals --trace --doctest-modules
    flags --cache-show --doctest-continue-on-failure --benchmark-skip --benchmark-disable --benchmark-only
    flags --random-order -f --noconftest --keep-duplicates --durations-verbose --continue-on-collection-errors
    flags --exit-on-first-error
    text -kmnrW --tb --maxfail --durations --durations-min --color --timeout --timeout-method --reruns --reruns-delay
    text --dist --numprocesses --import-mode --log-level --log-cli-level --log-format --log-date-format --capture
    text --deselect --verbosity --cov-fail-under --show-capture --code-highlight --lfnf --last-failed-no-failures
    text --pythonwarnings --asyncio-mode --hypothesis-seed --hypothesis-profile --ignore-glob --maxprocesses
    text --randomly-seed --count --doctest-glob --doctest-report --max-worker-restart --markexpr --keyword
    path --ignore --cov --testmon-path
    choice -p no:[\w.]+
    choice --cov-report (?:term|term-missing|xml|json|html|lcov|annotate)(?::skip-covered)?
    maybe --cov --cov-context
unittest: text*
    flags -vqfbc --verbose --quiet --failfast --buffer --catch --locals
    text -kp --pattern
    path -st --start-directory --top-level-directory
tox, nox: text*
    flags -vqlpr --list --recreate --version
    text -e -s -k --session --sessions
coverage: sub
coverage run: script text*
    flags --branch -a --append -p
    text --source --include --omit
    launch -m
coverage report: any*
    flags -mi --show-missing --skip-covered --skip-empty --ignore-errors
    text --include --omit --fail-under --precision --sort --format
ruff: sub
    flags --version -qv --quiet --verbose --isolated
ruff check: any*
    flags -qsven --quiet --silent --verbose --diff --statistics --show-files --show-settings --show-fixes --no-cache
    flags --exit-zero --no-fix --preview --no-preview --no-respect-gitignore --force-exclude --exit-non-zero-on-fix
    flags --isolated --unsafe-fixes
    text --select --ignore --extend-select --per-file-ignores --fixable --unfixable --target-version --output-format
    text --line-length --color
    path --exclude --extend-exclude
ruff format: any*
    flags -qvn --check --diff --quiet --verbose --no-cache --preview --isolated --no-respect-gitignore
    text --line-length --target-version --range --color
    path --exclude
ruff rule, ruff config, ruff linter, ruff version: text*
    flags --all
    text --output-format
black: any*
    flags -qv --check --diff --color --no-color --quiet --verbose --fast --safe --preview --version
    text -lt --line-length --target-version --exclude --include
isort: any*
    flags -cqv --check --check-only --diff --quiet --verbose --version
    text --profile --line-length -l
flake8, pycodestyle, pyflakes: any* ; response
    flags -qv --count --statistics --show-source --benchmark --version --exit-zero
    text --select --ignore --extend-ignore --max-line-length --max-complexity --exclude --per-file-ignores --format
    text --extend-select --filename
pylint: any* ; response
    flags -Ev --errors-only --verbose --version --list-msgs --exit-zero
    text -drjf --disable --enable --reports --jobs --max-line-length --score --msg-template --ignore --fail-under
    text --ignore-patterns --output-format --confidence --fail-on
mypy: any* ; response
    flags -vh --strict --no-incremental --ignore-missing-imports --show-error-codes --hide-error-codes --pretty
    flags --no-error-summary --show-error-context --show-column-numbers --warn-unused-ignores --warn-return-any
    flags --warn-unreachable --disallow-untyped-defs --disallow-any-generics --check-untyped-defs --no-strict-optional
    flags --namespace-packages --explicit-package-bases --version --verbose --no-color-output --no-implicit-optional
    flags --disallow-untyped-calls --disallow-incomplete-defs --strict-equality --follow-untyped-imports
    flags --sqlite-cache --no-site-packages --no-silence-site-packages --warn-redundant-casts --warn-unused-configs
    flags --no-pretty
    text -pm --package --module --python-version --platform --follow-imports --disable-error-code --enable-error-code
    text --exclude --always-true --always-false --output
pyright, basedpyright: any*
    flags -v --version --verbose --stats --warnings --outputjson --skipunannotated --dependencies
    text --level --pythonversion --pythonplatform --threads
ty: sub
ty check: any*
    flags -qv --quiet --verbose --exit-zero --error-on-warning
    text --python-version --output-format --error --warn --ignore --color
bandit: any* ; response
    flags -rqv --recursive --quiet --verbose
    text -fslt --format --severity-level --confidence-level --tests --skip
lint-imports: none
    flags --verbose --show-timings --no-cache
    text --contract
pre-commit: sub
pre-commit run: text*
    flags -av --all-files --verbose --show-diff-on-failure
    any --files
pip: sub
    flags -qvV --quiet --verbose --version --disable-pip-version-check --no-color --no-input --isolated
pip list, pip freeze, pip inspect: none
    flags -oueql --outdated --uptodate --editable --local --user --not-required --exclude-editable --include-editable
    flags --pre --quiet --verbose --disable-pip-version-check --all --no-color
    text --format --exclude
pip show, pip check, pip help: text*
    flags -fqv --files --quiet --verbose
pip install: ref*
    flags -Uqv --upgrade --quiet --verbose --no-deps --pre --user --dry-run --force-reinstall --no-cache-dir
    flags --ignore-installed --no-build-isolation --no-input --disable-pip-version-check --require-hashes
    flags --break-system-packages
    text --no-binary --only-binary --upgrade-strategy --progress-bar --timeout --retries --root-user-action
    any -rec --requirement --editable --constraint
pip uninstall: text*
    flags -yq --yes --quiet
pip index, pip cache: text*
    flags -q
pip search, pip hash: any*
uv: sub
    flags -qvnV --quiet --verbose --version --no-cache --offline --no-progress --frozen --locked
uv sync, uv lock: none
    flags -qnU --frozen --locked --all-extras --no-dev --dev --all-groups --offline --upgrade --check --inexact
    flags --dry-run --no-sources --all-packages
    text --extra --group --no-group -P --upgrade-package --package
uv add, uv remove: ref*
    flags --dev --frozen --locked --no-sync --editable --raw
    text --group --extra --optional --bounds
uv tree, uv version: none
    flags --frozen --locked --outdated --short --no-dedupe --invert
    text -d --depth --package --prune
uv pip: sub
uv pip list, uv pip freeze, uv pip tree, uv pip check: none
    flags --outdated -eq --editable --quiet
    text --format --exclude
uv pip show: text*
    flags -f --files
uv pip install: ref*
    flags -Uqn --upgrade --no-deps --quiet --dry-run
    any -rec
uv run: launch
    flags -qnv --frozen --locked --no-sync --offline --all-extras --all-groups --dev --no-dev --isolated --exact
    flags --quiet
    text --extra --group --no-group --only-group --package
    launch -m --module
uv build: any
    flags --sdist --wheel -q
uvx, pipx, npx, bunx: launch
    flags -yq --yes --quiet --no --no-install
poetry, pdm, pipenv, hatch, rye: sub
    flags -qvnV --no-ansi --version --no-interaction
poetry run, pdm run, pipenv run, rye run, hatch run: launch
poetry show, poetry check, poetry env, poetry lock, poetry install: text*
    flags -tloaTq --tree --latest --outdated --all --no-root --sync --no-dev --no-interaction --no-ansi
    text --only --with --without -E --extras
npm: sub
    flags -sdv --silent --version
npm test, npm t, npm start, npm run, npm run-script: text* ; dashed
    flags -sw --silent --if-present --ws --workspaces --include-workspace-root
    text --workspace
npm ls, npm list, npm ll: text*
    flags -agl --all --global --json --long --parseable --prod --dev
    text --depth --omit
npm outdated, npm audit, npm view, npm info, npm explain, npm why, npm help, npm ping, npm whoami: ref*
    flags --json --all -g --long
    text --omit --audit-level
npm install, npm i, npm ci, npm add: ref*
    flags -DSEO --save-dev --save --save-exact --save-optional --no-save --legacy-peer-deps --ignore-scripts
    flags --no-audit --no-fund --prefer-offline --omit=dev --no-progress --dry-run
    text --omit --include --loglevel
npm uninstall, npm remove, npm update, npm dedupe, npm prune, npm rebuild: ref*
    flags -DS --save --save-dev --dry-run
npm exec, npm x: launch
    flags -y --yes --no
pnpm, yarn, bun: sub
    flags -rsw --silent --recursive --version -v
pnpm test, pnpm run, yarn test, yarn run, bun test, pnpm t: text* ; dashed
    flags -rs --recursive --if-present --silent --coverage --bail
    text --filter -t
pnpm install, pnpm add, pnpm i, yarn add, yarn install, bun install, bun add: ref*
    flags -DdEw --save-dev --dev --exact --frozen-lockfile --immutable --ignore-scripts --prefer-offline
    text --filter
pnpm ls, pnpm list, pnpm why, pnpm outdated, yarn why, yarn list, yarn info: ref*
    flags -rg --recursive --json --long --prod --dev
    text --depth --filter --pattern
pnpm exec, pnpm dlx, yarn exec, yarn dlx, bun x, bun run: launch
    flags -rs --recursive --silent
node: script text*
    flags -v --version --test --watch --trace-warnings --no-warnings --check -c --enable-source-maps
    name --test-reporter
    text --test-name-pattern --max-old-space-size --test-concurrency
tsc: any* ; response
    flags --noEmit --strict --pretty --version -v --skipLibCheck --listFiles --showConfig --diagnostics --allowJs
    flags --checkJs --esModuleInterop --noUnusedLocals --resolveJsonModule --incremental --noEmitOnError -w --watch
    text --target --module --lib --jsx --moduleResolution -t -m
    path -p --project
eslint, oxlint: any*
    flags -v --quiet --version --no-eslintrc --no-ignore --no-inline-config --report-unused-disable-directives --color
    flags --no-color --fix-dry-run --no-error-on-unmatched-pattern --debug --no-warn-ignored
    name -f --format
    text --ext --max-warnings --rule --env --global --ignore-pattern --concurrency
prettier: any*
    flags -clu --check --list-different --no-color --no-config --no-editorconfig --ignore-unknown --no-semi
    flags --single-quote
    text --parser --tab-width --print-width --log-level --trailing-comma --end-of-line
biome: sub
biome check, biome lint, biome format, biome ci: any*
    flags --verbose --no-errors-on-unmatched --changed --staged
    name --reporter
    text --max-diagnostics --diagnostic-level --only --skip --colors
jest: any*
    flags -ivobt --ci --runInBand --verbose --bail --coverage --no-coverage --silent --watchAll=false
    flags --passWithNoTests --onlyChanged --onlyFailures --listTests --no-cache --detectOpenHandles --forceExit
    flags --colors --json --no-watchman
    text -tw --testNamePattern --testPathPattern --testPathPatterns --maxWorkers --testTimeout --selectProjects
    text --changedSince
vitest: text*
    flags --run --coverage --ui=false --passWithNoTests --no-color --silent --no-file-parallelism --bail
    name --reporter --environment
    text -t --testNamePattern --project --testTimeout
mocha: any*
    flags -bcGR --bail --exit --recursive --color --no-color --dry-run --forbid-only --parallel --check-leaks
    name --reporter
    text -gft --grep --fgrep --timeout --retries --jobs --ui
go: sub
go test: any* ; single dash
    flags -v -race -short -cover -failfast -json -benchmem -i -a -x -n -trimpath -fullpath
    text -run -count -timeout -bench -benchtime -cpu -parallel -covermode -coverpkg -tags -skip -shuffle -vet -p -list
    text -fuzztime
go build: any* ; single
    flags -v -race -a -x -n -trimpath -i -msan -asan
    text -tags -p -buildmode -mod
    made -o
go vet: any* ; single
    flags -v -json -x -n
    text -tags -c -p -mod
go list: any* ; single
    flags -m -json -deps -e -test -u -versions -find -export
    text -f -tags -mod
go run: launch ; single
    flags -race -v -x -n
    text -tags -mod -p
go mod: sub
go mod tidy, go mod download, go mod verify, go mod graph, go mod why, go mod vendor: text* ; single
    flags -v -x -json -m -e -diff
    text -go -compat
go version: none ; reads
go fmt, go doc, go env, go generate, go clean, go get, go install: any* ; single
    flags -u -all -src -json -v -m -n -x -short -t -d -cache -testcache
    text -tags -run
gofmt, goimports: any* ; single
    flags -d -l -s -e -v
    text -local
golangci-lint: sub
golangci-lint run: any*
    flags -v --verbose --fast --new --tests --color --no-config
    text --timeout --enable --disable -E -D --out-format --max-issues-per-linter --max-same-issues --build-tags
    text --new-from-rev
staticcheck: any* ; single
    flags -tests -debug.version
    text -checks -f -go -tags
cargo: sub
    flags -qvV --version --quiet --verbose --locked --offline --frozen --list
cargo test, cargo t, cargo bench, cargo nextest: text* ; dashed @libtest
    use @cargo
    flags --no-run --no-fail-fast --doc
cargo build, cargo b, cargo check, cargo c, cargo doc, cargo fetch, cargo tree, cargo metadata: text*
    use @cargo
    flags --no-deps --duplicates -d --keep-going -i --document-private-items
    text -e --edges --invert --depth --prefix --format-version --format
cargo clippy: text* ; dashed @rustc
    use @cargo
    flags --no-deps --keep-going
cargo run, cargo r: text* ; dashed
    use @cargo
cargo fmt: any* ; dashed @rustfmt
    flags --check --all -v -q
    text -p --package
cargo add, cargo remove, cargo update, cargo search, cargo info: text*
    flags --dev --build --optional --dry-run --no-default-features -q --workspace
    text -p -F --features --precise --limit --package
cargo clean: none
    flags -n --dry-run --release --doc
    text -p --package
@cargo: text*
    flags -qvr --quiet --verbose --release --workspace --all --all-targets --all-features --no-default-features --lib
    flags --bins --tests --examples --benches --locked --offline --frozen --ignore-rust-version --timings
    text -pjF --package --jobs --features --bin --test --bench --example --profile --target --color --message-format
    text --exclude
@libtest: text*
    flags --nocapture --no-capture --ignored --include-ignored --exact --list --show-output --quiet -q --test --bench
    text --test-threads --skip --color --format
@rustc: none
    text -DWAF
@rustfmt: any*
    flags --check -v -q -l
    text --edition --color
rustc: any* ; response
    flags -vVOg --version --verbose --test
    text --edition --crate-type --crate-name --print --explain --cfg -DWAF
rustup: sub
rustup show, rustup toolchain, rustup target, rustup component, rustup which: text*
make, gmake: assign*
    flags -kniswBqdSetrRpv --keep-going --dry-run --just-print --silent --quiet --always-make --question
    flags --no-print-directory --print-directory --debug --trace --version --warn-undefined-variables
    flags --no-builtin-rules --stop
    maybe -jlO --jobs --load-average --output-sync
just: assign*
    flags -lnqv --list --dry-run --quiet --verbose --summary --dump --evaluate
task: assign*
    flags -lansv --list --list-all --dry --silent --verbose --summary
ninja: text*
    flags -nvd --verbose --version
    text -jkl -t
cmake: any*
    flags --version -N --verbose -v
    text -G -j --target --config --parallel --preset
    path -BS --build
ctest: text*
    flags -VNQ --output-on-failure --verbose --extra-verbose --progress --rerun-failed --stop-on-failure
    text -RELjC --tests-regex --exclude-regex --label-regex --parallel --timeout --repeat
    path --test-dir
mvn, mvnw: text* ; single
    flags -q -B -o -e -X -U -am -amd -fae -ff -fn -nsu -ntp -N -V --quiet --batch-mode --offline --errors --version
    text -pl -P -rf -T --projects
    choice -Dtest [\w#*.,+-]+
    flags -DskipTests -Dmaven.test.skip
gradle, gradlew: text*
    flags -qiSv --quiet --offline --info --debug --stacktrace --version --dry-run --no-daemon --continue --parallel
    flags --rerun-tasks --warn --no-build-cache
    text -x --tests --console --exclude-task
javac: any* ; response single
    flags -Xlint -verbose -version -g -nowarn
    text -source -target -encoding --release
dotnet: sub
dotnet test, dotnet build, dotnet restore, dotnet clean, dotnet list: any*
    flags --no-restore --no-build --nologo --list-tests --force --outdated --no-incremental
    choice --logger trx|console(?:;verbosity=\w+)?
    text -cvf --configuration --verbosity --framework --filter
bundle: sub
bundle exec: launch
bundle install, bundle list, bundle show, bundle check, bundle outdated, bundle info: text*
    flags --quiet --local --verbose
    text --jobs --retry
rspec, rubocop, rake: any* ; response
    flags -fbdPT --color --no-color --fail-fast --dry-run --backtrace --parallel --list --version --tasks
    name -f --format
    text -e --example --seed --tag --only --except --order
playwright: sub
playwright test: any*
    flags -x --list --quiet --headed --forbid-only --fully-parallel --last-failed --pass-with-no-tests
    text -g --grep --grep-invert --project -j --workers --retries --timeout --shard --max-failures
    text --repeat-each
    name --reporter
composer, phpunit, phpstan: text*
    flags -qvnioDNta --no-interaction --no-ansi --dry-run --version --testdox --stop-on-failure --no-progress --outdated
    flags --installed --tree --direct --latest --all --name-only
    text --filter --group --level --testsuite
swift, xcodebuild, zig: text*
    flags -v --version --verbose --parallel
    text --filter --skip --configuration -c
shellcheck: any*
    flags -xaV --external-sources --check-sourced --version
    text -sfeSi --shell --format --exclude --severity --include --color
shfmt, yamllint, markdownlint, hadolint, actionlint, codespell, vale, taplo: any*
    flags -dlsv --diff --list --simplify --version --strict --no-warnings --check --quiet
    text -fi --format --indent
json.tool: path write*
    flags --sort-keys --no-ensure-ascii --json-lines --tab --no-indent --compact
    text --indent
"""
