# `make demo` and `make test` are the README's two commands; `.ci/run` runs everything. `make fuzz` tries generated inputs
# for a time set with `FUZZ_ARGS="--seconds 600"`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test fuzz check pictures site

# Editable, as for the tests: an installed copy would become outdated.
demo:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints/tested.txt -e '.[local]'
	$(BIN)/llm-do models pull
	$(BIN)/llm-do run examples/receipts

# One more worker than there are cores, because many tests wait for a subprocess. Each of these would compile all that it
# imports if the variable were set.
unexport PYTHONDONTWRITEBYTECODE
test: $(VENV)/.ready
	$(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal -m 'not slow' $(PYTEST_ARGS)

fuzz: $(VENV)/.ready
	$(BIN)/python -m tests.fuzz $(FUZZ_ARGS)

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

pictures: $(VENV)/.ready
	$(BIN)/python docs/pictures/make.py

# The site of docs/, for a browser without a server: build/site/index.html.
site: $(VENV)/.site
	$(BIN)/python scripts/build_site.py

$(VENV)/.site: $(VENV)/.ready
	$(BIN)/python -m pip install -q -c constraints/tested.txt --group site
	touch $@

# An editable install, with the dependencies of tests and checks. Dependency groups need pip 25.1.
$(VENV)/.ready: pyproject.toml constraints/tested.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q 'pip>=25.1'
	$(BIN)/python -m pip install -q -c constraints/tested.txt -e '.[all]' --group test --group check
	touch $@
