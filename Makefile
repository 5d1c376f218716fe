# `make demo` and `make test` need Python 3.11, make, and an index of Python packages; nothing else has to be installed.

VENV ?= .venv
PYTHON ?= $(shell for python in python3.11 python3; do $$python -c 'import venv' 2>/dev/null && echo $$python && break; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# Compiling every module takes longer than compiling the few that are imported.
INSTALL := $(PIP) install --quiet --quiet --no-deps --no-compile

# Nothing is compiled when it is installed, so a first import has to keep what it compiled: vLLM alone is 900 modules.
unexport PYTHONDONTWRITEBYTECODE

export HF_HUB_OFFLINE := 1
export VLLM_NO_USAGE_STATS := 1
export RAY_USAGE_STATS_ENABLED := 0
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-dev demo models test soak bench lint format docs clean

help: ## Say what each target does.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp is newer than the lock it was installed from, so that nothing is installed twice.
$(VENV)/.stamp-cpu: infra/requirements-cpu.lock | $(BIN)/python
	$(INSTALL) -r $<
	@touch $@

$(VENV)/.stamp-dev: infra/requirements-dev.lock $(VENV)/.stamp-cpu
	$(INSTALL) -r $<
	@touch $@

$(VENV)/.stamp-bench: infra/requirements-bench.lock | setup-dev
	$(INSTALL) -r $<
	@touch $@

$(VENV)/.stamp-project: pyproject.toml $(VENV)/.stamp-cpu
	$(INSTALL) --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.stamp-project ## Install what the system needs on a machine without a GPU.

setup-dev: setup $(VENV)/.stamp-dev ## Install the tools for tests and checks too.

models: setup ## Convert the small models that the demonstration and the tests use, once.
	$(BIN)/python -m demo.models smollm2 tiny-llama

demo: setup ## Run a job on this machine: S3 server, 200 receipts, a small model, a report.
	@$(BIN)/python -m demo

test: lint ## Run every check and every test, save the long ones marked `soak`; ARGS are pytest's.
	@$(BIN)/python -m pytest -m "not soak" -n 2 --dist loadscope --no-loadscope-reorder $(ARGS)

soak: setup-dev ## Run the long tests, and under 200 random faults for 30 minutes; ARGS are options, such as `--seed 7 --minutes 5`.
	@$(BIN)/python -m pytest -m soak
	@$(BIN)/python -m tests.soak $(ARGS)

bench: $(VENV)/.stamp-bench models ## Run every benchmark (four hours) and write docs/benchmarks.md; ARGS are options, such as `--only masks`.
	@$(BIN)/python -m demo.models gemma
	@$(BIN)/python -m tests.bench $(ARGS)

lint: setup-dev ## Check format, style, types, and the direction of imports.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy -p demo -p docs -p schemas
	$(BIN)/lint-imports

format: setup-dev ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Make docs/reference anew from the code.
	$(BIN)/python -m docs.reference

clean: ## Remove the virtual environment, converted models and caches.
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
