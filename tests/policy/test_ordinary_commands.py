"""Ordinary commands run without approval under the rule that a person would write for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do.policy.arguments import split_command
from llm_do.policy.matcher import matches
from llm_do.policy.pattern import parse_pattern
from llm_do.policy.values import ToolCallInfo
from tests.toolsets.shell.support import configured, decision

ORDINARY = r"""
git status *                    | git status --short --branch
git log *                       | git log --oneline -20
git log *                       | git log -S'a/b' --since='2 weeks ago' -- src
git log *                       | git log --format='%h %an %ad %s' --date=short --author='Ann' -n 5
git log *                       | git log -L '/def f/,/^$/:src/main.py'
git log *                       | git log --grep='fix/.*' -i main..topic
git diff *                      | git diff --stat HEAD~3..HEAD -- src tests
git diff *                      | git diff --cached --name-only --diff-filter=ACM
git diff *                      | git diff -U5 main...topic
git show *                      | git show HEAD:src/main.py
git show *                      | git show --stat HEAD^ stash@{0}
git branch *                    | git branch -a --contains HEAD
git branch *                    | git branch --show-current
git rev-parse *                 | git rev-parse --abbrev-ref HEAD
git blame *                     | git blame -L 10,20 -w src/main.py
git ls-files *                  | git ls-files -o --exclude-standard '*.py'
git grep *                      | git grep -n -E '/api/v[0-9]+' -- src
git describe *                  | git describe --tags --always --dirty
git tag *                       | git tag -l 'v1.*' --sort=-creatordate
git stash *                     | git stash push -m 'work in progress' -u
git stash list                  | git stash list
git remote *                    | git remote -v
git add *                       | git add -A src tests/test_main.py
git add *                       | git add .
git commit *                    | git commit -am 'Fix the path /api/v1 of the client'
git commit *                    | git commit --amend --no-edit
git checkout *                  | git checkout -b feature/login origin/main
git switch *                    | git switch -c feature/x
git restore *                   | git restore --staged src/main.py
git fetch *                     | git fetch origin --prune --tags
git fetch https://example.org/a/b.git * | git fetch https://example.org/a/b.git main
git pull *                      | git pull --ff-only origin main
git push *                      | git push -u origin feature/x
git merge *                     | git merge --no-ff -m 'Merge it' topic
git rebase *                    | git rebase --onto main topic~3 topic
git cherry-pick *               | git cherry-pick -x abc1234
git reset *                     | git reset --soft HEAD~1
git worktree list *             | git worktree list --porcelain
git check-ignore *              | git check-ignore -v build/x.o
git clone https://github.com/** | git clone https://github.com/a/b.git
pytest *                        | pytest -x -q tests/test_main.py::test_login
pytest *                        | pytest -k 'login and not slow' --maxfail=2 --tb=short -ra
pytest *                        | pytest -p no:cacheprovider --cov=src --cov-report=term-missing
pytest *                        | pytest -n auto --durations=10 -m 'not slow'
python -m pytest *              | python -m pytest -vv --lf tests/unit
python3 -m pytest *             | python3 -m pytest tests -q --no-header
uv run pytest *                 | uv run pytest -x tests/test_main.py
poetry run pytest *             | poetry run pytest -q
python -m unittest *            | python -m unittest discover -s tests -v
python -m json.tool *           | python -m json.tool package.json
ruff check *                    | ruff check --output-format=json src
ruff check *                    | ruff check . --select E,F --statistics
ruff format *                   | ruff format --check --diff .
mypy *                          | mypy --strict --show-error-codes src
pyright *                       | pyright --outputjson src/main.py
black *                         | black --check --diff -l 100 src
flake8 *                        | flake8 --max-line-length=120 --count src
pylint *                        | pylint -E --disable=C0114 --output-format=json src
tox *                           | tox -e py312
pre-commit run *                | pre-commit run --all-files
pip list *                      | pip list --outdated --format=json
pip show *                      | pip show -f requests
pip install git+https://github.com/a/b.git@v1 | pip install git+https://github.com/a/b.git@v1
pip install -e .                | pip install -e .
pip install -r requirements.txt | pip install -r requirements.txt
uv sync *                       | uv sync --frozen --all-extras
uv pip list *                   | uv pip list --outdated
npm test *                      | npm test -- --watch=false
npm run *                       | npm run build
npm run lint *                  | npm run lint -- --max-warnings=0
npm ls *                        | npm ls --depth=0 --json
npm view *                      | npm view @types/node version
npx tsc *                       | npx tsc --noEmit -p tsconfig.json
npx eslint *                    | npx eslint src --ext .ts,.tsx
npx prettier *                  | npx prettier --check 'src/**/*.ts'
npx jest *                      | npx jest --ci -t 'logs in' src/login.test.ts
npx vitest run *                | npx vitest run --coverage
tsc *                           | tsc --noEmit
eslint *                        | eslint --max-warnings 0 --format json src
go test *                       | go test -count=1 -race -run 'TestLogin/ok' ./...
go test *                       | go test -v -coverpkg=./... -timeout 30s ./pkg/api
go build *                      | go build -v ./...
go vet *                        | go vet ./...
go list *                       | go list -m -json all
go mod tidy                     | go mod tidy
gofmt *                         | gofmt -l -d .
golangci-lint run *             | golangci-lint run --timeout 5m ./...
cargo test *                    | cargo test --workspace --all-features -- --nocapture --test-threads=1
cargo clippy *                  | cargo clippy --all-targets -- -D warnings
cargo build *                   | cargo build --release -p api
cargo fmt *                     | cargo fmt --all -- --check
make *                          | make test VERBOSE=1
make test *                     | make test -j4 -k
make test ARGS=*                | make test 'ARGS=-k login -x'
mvn *                           | mvn -q -B test -Dtest=LoginTest
gradle *                        | gradle test --tests LoginTest --info
dotnet test *                   | dotnet test --no-build --filter Login
bundle exec rspec *             | bundle exec rspec spec/models --format documentation
cmake --build build *           | cmake --build build --target all -j 4
ctest *                         | ctest --test-dir build --output-on-failure -R login
rg *                            | rg -n '/api/v1' src
rg *                            | rg -l --hidden -g '!node_modules' -t py 'def \w+\(' .
rg *                            | rg --files -g '*.toml'
rg *                            | rg -c '@property' src
grep *                          | grep -rnE '^/(usr|etc)/' --include='*.py' src
grep *                          | grep -A3 -B3 -i error log.txt
find *                          | find . -name '*.py' -not -path './node_modules/*' -mtime -7
find *                          | find src -type f -size +100k -printf '%s %p\n'
fd *                            | fd -e py -t f test src
sed -n *                        | sed -n '/foo/,/bar/p' src/main.py
sed -n *                        | sed -n 10,40p src/main.py
sed *                           | sed -e 's|http://a/b|https://a/b|g' -e '/^$/d' config.txt
awk *                           | awk -F/ '{print $NF}' list.txt
awk *                           | awk 'NR > 1 && $3 ~ /err|warn/ {n++} END {print n/NR}' log.txt
cut *                           | cut -d/ -f2 list.txt
tr *                            | tr -d '/\r'
jq *                            | jq -c '.items[] | {name: .metadata.name, path: "a/b"}' x.json
jq *                            | jq -r --arg name x '.[$name]' package.json
yq *                            | yq -o json '.services' compose.yaml
ls *                            | ls -la src tests
cat *                           | cat README.md src/main.py
head *                          | head -n 50 README.md
tail *                          | tail -n 100 log.txt
wc *                            | wc -l src/main.py tests/test_main.py
tree *                          | tree -L 2 -I 'node_modules|.git' src
diff *                          | diff -u a.txt b.txt
sort *                          | sort -t/ -k2,2 -u list.txt
du *                            | du -sh --exclude='*/cache' src
stat *                          | stat -c '%s /%n' README.md
ps *                            | ps -eo pid,ppid,cmd --sort=-%mem
curl -s http://127.0.0.1:9/v1   | curl -s http://127.0.0.1:9/v1
curl -s http://127.0.0.1:*/**   | curl -s 'http://127.0.0.1:8080/api/users?limit=5'
curl -s https://api.example.org/** | curl -s https://api.example.org/v1/users/3
curl *                          | curl -sS -X POST -H 'Content-Type: application/json' -d '{"a": "/b"}' http://localhost/x
curl *                          | curl -s -o /dev/null -w '%{http_code}' http://localhost:8000/health
kubectl get *                   | kubectl get pods -n web -o json -l app=web
kubectl get *                   | kubectl get deploy/web -o jsonpath='{.spec.replicas}'
kubectl describe *              | kubectl describe pod web-0 -n web
kubectl logs *                  | kubectl logs -c y --tail=100 --since 1h web-0
kubectl top *                   | kubectl top pods -A
helm list *                     | helm list -n web -o json
docker ps *                     | docker ps -a --format '{{.Names}}'
docker logs *                   | docker logs --tail 50 -f web
docker compose logs *           | docker compose logs --no-color web
terraform plan *                | terraform plan -no-color -input=false
gh pr *                         | gh pr list --state open --json number,title --limit 10
gh run *                        | gh run view 123 --log-failed
gh issue *                      | gh issue view 12 --comments
sqlite3 -readonly data.db *     | sqlite3 -readonly data.db 'select count(*) from users where path = "/a"'
sqlite3 data.db *               | sqlite3 data.db .schema
systemctl *                     | systemctl status web --no-pager
journalctl *                    | journalctl -u web -n 50 --no-pager --since '1 hour ago'
tar -tvf *                      | tar -tvf dist.tar.gz
tar *                           | tar tzf dist.tar.gz
mkdir *                         | mkdir -p build/out
cp *                            | cp -r src/a src/b
touch *                         | touch src/new.py
timeout 60 pytest *             | timeout 60 pytest -x
sometool *                      | sometool --verbose --level=3 -n 5 src/a.txt
sometool *                      | sometool sub --description 'a b' --count 3 --dry-run src
"""
ROWS = [tuple(part.strip() for part in line.split(" | ", 1)) for line in ORDINARY.strip().splitlines()]

LINES = [
    (["git add *", "git commit *"], "git add -A && git commit -m 'Fix /api'"),
    (["cargo build *", "cargo test *", "tail *"], "cargo build 2>&1 | tail -n 5; cargo test 2>/dev/null"),
    (["pytest *", "tail *"], "pytest -x 2>&1 | tail -n 30"),
    (["make *"], "make lint && make test || make clean"),
    (["rg *", "wc *", "sort *"], "rg -l '/api' src | sort | wc -l"),
    (["npm run *"], "npm run build >/dev/null 2>&1 && npm run lint"),
    (["ls *"], "ls *.md src/*.py 2>/dev/null || ls -la"),
    (["curl -s http://127.0.0.1:8000/**", "jq *"], "curl -s http://127.0.0.1:8000/v1/x | jq -c '.items[] | .a'"),
    (["git diff * && git status"], "git diff --stat && git status"),
]


def call(line: str) -> ToolCallInfo:
    return ToolCallInfo("shell", {"command": line}, primary="command", resolved={"command": split_command(line)})


@pytest.mark.parametrize(("rule", "line"), ROWS)
def test_a_projects_rule_allows_it(rule: str, line: str) -> None:
    assert matches(parse_pattern(f"shell({rule})"), call(line))


def test_a_toolsets_rule_allows_it(tmp_path: Path) -> None:
    for rule, line in ROWS:
        found = decision(configured(tmp_path, "sh", allow=[rule]), line)
        assert found.effect == "allow", (rule, line, found.reason)


@pytest.mark.parametrize(("rules", "line"), LINES)
def test_a_line_of_several_commands_is_allowed(tmp_path: Path, rules: list[str], line: str) -> None:
    found = decision(configured(tmp_path, "sh", allow=rules), line)
    assert found.effect == "allow", found.reason
