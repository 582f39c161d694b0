# The two commands of the README, and what .ci/run calls. Everything lives in .venv and $(RELEASES); nothing else is touched.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
GRAPHLINT_CACHE ?= $(HOME)/.cache/graphlint/releases
export GRAPHLINT_CACHE
DEMO ?= vllm-0.20.0
# the graphlint package itself is built and installed once more, as a user would get it
WHEEL_VENV := $(VENV)/wheel

.PHONY: demo test lint unit ecosystem bench wheel clean

demo: $(BIN)/.installed ## check a release of vLLM
	@$(BIN)/python -m bench fetch $(DEMO)
	cd "$(GRAPHLINT_CACHE)/$(DEMO)" && "$(CURDIR)/$(BIN)/graphlint" check vllm --exit-zero --statistics

test: lint unit ## what a change must pass

lint: $(BIN)/.installed
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(BIN)/.installed
	$(BIN)/python -m pytest -n auto

ecosystem: $(BIN)/.installed ## recall and noise on released engines (downloads them)
	$(BIN)/python -m pytest -m ecosystem || [ $$? -eq 5 ]

bench: $(BIN)/.installed ## recall, noise, mutants and speed on released engines (downloads about 50 of them)
	mkdir -p build
	$(BIN)/python -m bench all --docs --json build/bench.json

wheel: $(BIN)/.installed ## build the wheel, install it in an environment of its own, use it
	rm -rf dist $(WHEEL_VENV)
	$(BIN)/python -m build -q --wheel
	$(BIN)/python -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install -q --disable-pip-version-check dist/*.whl
	cd $(WHEEL_VENV) && bin/graphlint rule && bin/graphlint --version

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "graphlint needs Python 3.10 or later (PYTHON=python3.x make ...)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q --disable-pip-version-check --group dev -e .
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
