# `make demo` and `make test` set up what they need in .venv. A Python of your choice: make demo PYTHON=python3.12
# The first Python that is new enough; the floor is requires-python in pyproject.toml.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
BIN := .venv/bin
# Nothing is fetched from a model hub, and pyright does not ask for a newer version of itself.
export HF_HUB_OFFLINE = 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS = 1

.PHONY: demo test test-slow perf lint types docs venv clean

demo: .venv/installed
	$(BIN)/deixis demo

# A process for each core, one thread in each; what a file of tests sets up stays in one process.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test: lint types
	$(PYTEST)

test-slow: .venv/installed-dev
	$(PYTEST) -m slow

# Every script in perf/ but what they share; JSON and charts under perf/results. On a quiet machine. Options: make perf PERF=--quick
perf: .venv/installed
	for script in $(filter-out perf/harness.py,$(wildcard perf/*.py)); do $(BIN)/python $$script $(PERF) || exit 1; done

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# An empty environment, for those who want to put another build of torch into it first (README, "Install").
venv: .venv/made

.venv/made:
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "deixis needs Python 3.11 or newer; install one, or name it: make demo PYTHON=/path/to/python3" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/made pyproject.toml
	$(BIN)/python -m pip install -e .
	touch $@

# An extra comes on top of the plain installation.
.venv/installed-%: .venv/installed
	$(BIN)/python -m pip install -e '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist docs/_build
