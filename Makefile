# `make demo` and `make test` are the two commands of the README; `.ci/run` runs everything. `make fuzz` tries inputs that
# nobody thought of, for as long as `FUZZ_ARGS="--seconds 600"` says.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test fuzz check pictures

# In place, as for the tests: a copy of the package would be what they start afterwards, and grow old.
demo:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints/tested.txt -e '.[local]'
	$(BIN)/llm-do models pull
	$(BIN)/llm-do run examples/receipts

# A worker more than there are cores: many tests wait for a process of their own.
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

# The package in place, with what tests and checks need. pip learnt dependency groups in 25.1.
$(VENV)/.ready: pyproject.toml constraints/tested.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q 'pip>=25.1'
	$(BIN)/python -m pip install -q -c constraints/tested.txt -e '.[local,otel,service]' --group test --group check
	touch $@
