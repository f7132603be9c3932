# `make` lists the targets. Each one sets up what it needs: Python 3.11 or later, make and git are all it asks for.

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

# PYTHON=python3.12 chooses an interpreter; without it the first of these that is new enough and can make environments.
PYTHON ?=
CANDIDATES := python3.13 python3.12 python3.11 python3
# The versions of `make test-pythons`; the classifiers in pyproject.toml claim these and no others.
PYTHONS := 3.11 3.12 3.13
# Compiles the locks and makes the environments of test-lowest and test-pythons; no other target needs it.
UV_VERSION := 0.13.9

VENV := .venv
BIN := $(VENV)/bin
# A change of any of this asks for a new environment: what is locked, what is declared, where it stands, who runs it.
KEY := $(shell { cat pyproject.toml requirements/webhook.txt requirements/dev.txt; echo '$(CURDIR) $(PYTHON)'; } | \
	git hash-object --stdin)
BASE := $(VENV)/.base-$(KEY)
DEV := $(VENV)/.dev-$(KEY)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := .cache/uv-$(UV_VERSION)/bin/uv

FIND_PYTHON = new='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'; \
	for python in $(or $(PYTHON),$(CANDIDATES)); do \
	  "$$python" -c "$$new" >/dev/null 2>&1 && break; python=; \
	done; \
	[ -n "$$python" ] || { echo 'No Python 3.11 or later with venv found ($(or $(PYTHON),$(CANDIDATES)));' \
	  'name one with PYTHON=/path/to/python3.' >&2; exit 1; }

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(BASE) ## show real manifests being converted
	@$(BIN)/python examples/demo.py

# In a folder outside the repository: what the tests hold (Argo CD's and Flux' marks) says nothing about the examples.
.PHONY: examples
examples: $(DEV) ## write what the tool prints for examples/legacy and tests/golden again
	@folder=$$(mktemp -d) && cp -R examples/legacy "$$folder/converted" && \
	{ $(BIN)/python -m gpu2dra_migrate convert --quiet "$$folder/converted" || [ $$? -eq 1 ]; } && \
	rm -rf examples/converted && cp -R "$$folder/converted" examples && rm -rf "$$folder"
	@$(BIN)/python tests/golden/test_shapes.py
	@rm -rf examples/charts/converted && cp -R examples/charts/legacy examples/charts/converted && \
	{ $(BIN)/python -m gpu2dra_migrate convert --quiet examples/charts/converted || [ $$? -eq 1 ]; }
	@folder=$$(mktemp -d) && cp -R examples/kustomize/legacy "$$folder/converted" && \
	{ $(BIN)/python -m gpu2dra_migrate convert --quiet "$$folder/converted" || [ $$? -eq 1 ]; } && \
	rm -rf examples/kustomize/converted && cp -R "$$folder/converted" examples/kustomize && rm -rf "$$folder"

.PHONY: test
test: lint binaries ## lint, then every test
	$(BIN)/python -m pytest -n auto --dist loadgroup

.PHONY: test-fast
test-fast: $(DEV) ## only the tests that take no more than seconds
	$(BIN)/python -m pytest -n auto -m 'not slow and not controlplane'

# Built once, from Go modules that tests/controlplane/versions pins, into the user's cache; minutes for the first time.
.PHONY: binaries
binaries: $(DEV) ## build Kubernetes, helm, kustomize and promtool for the tests
	@PYTHONPATH=tests $(BIN)/python -m controlplane build

VERSION := 1.37
.PHONY: cluster
cluster: $(DEV) ## run a control plane until Ctrl-C: make cluster VERSION=1.34
	@PYTHONPATH=tests $(BIN)/python -m controlplane up $(VERSION)

.PHONY: demo-cluster
demo-cluster: $(DEV) ## show pods being converted in a real control plane, and where they run
	@PYTHONPATH=tests $(BIN)/python -m controlplane demo $(VERSION)

# The goldens, what follows from values.yaml in the schema and the README; read the diff.
.PHONY: chart
chart: $(DEV) ## write what follows from the chart's templates and values again
	@PYTHONPATH=.:migrate:webhook:tests $(BIN)/python tests/chart/generate.py

.PHONY: chart-demo
chart-demo: $(DEV) ## install the chart into a real control plane, convert pods, upgrade, uninstall
	@PYTHONPATH=.:migrate:webhook:tests $(BIN)/python tests/chart/demo.py

.PHONY: lint
lint: $(DEV) ## ruff, mypy --strict and the import contracts
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy --strict
	$(BIN)/lint-imports

.PHONY: format
format: $(DEV) ## rewrite the code in the agreed format, with ruff's safe fixes
	$(BIN)/python -m ruff check --fix-only
	$(BIN)/python -m ruff format

.PHONY: bench
bench: $(DEV) ## measure, and write the figures as JSON and into the README
	PYTHONPATH=tests $(BIN)/python -m bench

.PHONY: test-lowest
test-lowest: $(UV) ## the tests with the lowest dependencies that pyproject.toml allows
	@mkdir -p .cache
	$(UV) pip compile --quiet --resolution lowest-direct --python-version $(firstword $(PYTHONS)) \
	  pyproject.toml --output-file .cache/lowest.txt
	@$(MAKE) check-pythons CONSTRAINTS=.cache/lowest.txt ENV=.cache/lowest

.PHONY: test-pythons
test-pythons: ## the tests on every supported Python that this machine has
	@$(MAKE) check-pythons CONSTRAINTS=requirements/dev.txt ENV=.cache/python

# Called by the two targets above: for each Python an environment of its own with CONSTRAINTS on what goes in. Versions
# that pyenv keeps count too, whether or not it puts them on PATH.
.PHONY: check-pythons
check-pythons: $(UV)
	@ran=; for version in $(PYTHONS); do \
	  for python in "python$$version" "$${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version".*/bin/python; do \
	    "$$python" -c 'import venv' >/dev/null 2>&1 && break; python=; \
	  done; \
	  [ -n "$$python" ] || { echo "Python $$version: not on this machine"; continue; }; \
	  echo "Python $$version, $(CONSTRAINTS)"; \
	  python=$$("$$python" -c 'import sys; print(sys.executable)'); env="$(ENV)-$$version"; \
	  $(UV) venv --quiet --clear --no-project --python "$$python" "$$env" && \
	  $(UV) pip install --quiet --python "$$env" --no-verify-hashes --constraint $(CONSTRAINTS) --editable '.[test]' && \
	  "$$env/bin/python" -m pytest -n auto -m 'not slow and not controlplane' || exit 1; \
	  ran="$$ran $$version"; \
	done; \
	[ -n "$$ran" ] && echo "The tests passed on Python$$ran with $(CONSTRAINTS)"

# The locks hold every file's hash and name no index. base.txt is for users of the converter, webhook.txt is what the
# webhook's image and the demo hold, dev.txt adds tests and linters; all hold what builds the package, so that nothing
# is fetched beside them. UPGRADE=--upgrade takes newer versions.
UPGRADE ?=
COMPILE = UV_CUSTOM_COMPILE_COMMAND='make lock' \
	$(UV) pip compile --quiet --universal --generate-hashes --no-annotate --no-emit-package gpu2dra \
	--python-version $(firstword $(PYTHONS)) $(UPGRADE) pyproject.toml -
BUILD_REQUIRES = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
.PHONY: lock
lock: $(UV) ## pin the dependencies again: make lock UPGRADE=--upgrade
	@set -e; $(FIND_PYTHON); \
	build=$$("$$python" -c '$(BUILD_REQUIRES)'); \
	echo "$$build" | $(COMPILE) --extra dev --output-file requirements/dev.txt; \
	echo "$$build" | $(COMPILE) --constraint requirements/dev.txt --output-file requirements/base.txt; \
	echo "$$build" | $(COMPILE) --constraint requirements/dev.txt --extra webhook --output-file requirements/webhook.txt

.PHONY: clean
clean: ## remove everything that the targets above have made
	rm -rf $(VENV) .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment of `make demo`: what converter and webhook need and nothing else.
$(BASE):
	@$(FIND_PYTHON); \
	echo "Setting up $(VENV) with $$("$$python" --version) (once)"; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement requirements/webhook.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The same environment with the tests and linters added.
$(DEV): $(BASE)
	@echo "Adding tests and linters to $(VENV) (once)"
	@$(PIP) install --require-hashes --requirement requirements/dev.txt
	@touch $@

$(UV):
	@$(FIND_PYTHON); rm -rf $(@D:/bin=) && "$$python" -m venv $(@D:/bin=)
	@$(@D)/python -m pip --disable-pip-version-check --quiet install uv==$(UV_VERSION)
