# Bare `make` lists the targets. `make demo` and `make test` do all the set-up they need.

.DEFAULT_GOAL := help
.PHONY: help setup demo recipes pyg test test-all test-long test-web test-packages lint-packages coverage lint fix check bench docs dist web web-check clean

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
# The first Python on the PATH that is new enough; `make PYTHON=/path/to/python3.12 …` chooses another.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

# Spark needs a Java; where none is new enough, the set-up brings one.
JAVA_MIN := 17
EXTRAS = dev,aws,client,kernels,policy,server,spark$(shell v=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	[ "$${v:-0}" -ge $(JAVA_MIN) ] || echo ,java)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with everything the project needs

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer on the PATH (hint: make PYTHON=/path/to/python3 setup)"; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "error: '$(PYTHON) -m venv' failed (hint: a distribution may keep it in a package of its own, such as python3-venv)"; exit 1; }
	@echo "setting up $(VENV) (the first time takes some minutes) …"
	@$(BIN)/python -m pip install --use-pep517 --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@$(BIN)/python -m omnigraph.spark.warm_up || echo "note: everything but Spark works here"
	@touch $@

demo: $(READY) ## the whole story: init, load, search, branch, merge, time travel, serve
	@$(BIN)/python examples/tour.py

# In CI the slowest tests are listed, so that growth shows.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadgroup $(if $(CI),--durations=20)

test: $(READY) ## run the tests that tell whether the software works, in ten minutes
	@$(PYTEST) --suite core

test-all: $(READY) build/pandas3 $(if $(shell command -v npm),web/node_modules/.package-lock.json) ## run the tests that 'make test' leaves out
	@$(PYTEST) --suite rest

test-long: $(READY) ## run the long forms of the slow suites
	@$(BIN)/python -m pytest -q --long -m long --durations=0 --durations-min=5

test-web: $(READY) ## run the browser tests; installs Debian's Chromium where it is missing
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fontconfig fonts-dejavu-core >/dev/null; }
	@OMNIGRAPH_BROWSER_TESTS=required $(BIN)/python -m pytest -q tests/ui tests/test_docs_page.py

PACKAGES := langchain-omnigraph llama-index-graph-stores-omnigraph
FRAMEWORKS := $(CURDIR)/build/frameworks

test-packages: $(FRAMEWORKS) ## run the tests of packages/ with LangChain and LlamaIndex, which are installed into build/frameworks
	@$(MAKE) --no-print-directory --jobs 2 --output-sync $(addprefix test-package-,$(PACKAGES))

test-package-%: $(FRAMEWORKS)
	@cd packages/$* && PYTHONPATH=$(FRAMEWORKS) PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(CURDIR)/$(BIN)/python -m pytest -q -p pytest_asyncio.plugin

lint-packages: $(FRAMEWORKS) ## run mypy on packages/
	@for package in $(PACKAGES); do (cd packages/$$package && PYTHONPATH=$(FRAMEWORKS) $(CURDIR)/$(BIN)/mypy) || exit 1; done

# The list is complete, so that pip resolves nothing; the main environment has the rest. Files are compiled on first use.
$(FRAMEWORKS): packages/constraints.txt | $(READY)
	@rm -rf $@
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target $@ --requirement packages/constraints.txt
	@touch $@

coverage: $(READY) ## run the tests and report uncovered lines; HTML in build/coverage
	@$(PYTEST) --cov --cov-report=term --cov-report=html:build/coverage

lint: $(READY) ## ruff, mypy, import contracts, canonical layout of the examples
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/omnigraph fmt --check examples src/omnigraph/demo

fix: $(READY) ## put the code into the canonical layout, mend what can be mended
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/omnigraph fmt examples src/omnigraph/demo

check: lint test test-all ## lint and all tests

build/pandas3: | $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $@ 'pandas>=3,<4'

bench: $(READY) ## run the benchmarks; each prints a ratio
	@$(BIN)/python -m bench

web: web/node_modules/.package-lock.json ## build the web explorer into src/omnigraph/ui/static; needs Node
	@cd web && npm run --silent types && npm run --silent build

web-check: web/node_modules/.package-lock.json ## type-check and test the web explorer, build it again and compare the bytes
	@cd web && npm run --silent types && npm run --silent test && node build.mjs dist
	@diff -r web/dist src/omnigraph/ui/static && rm -rf web/dist

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@cd web && npm install --no-save --silent --no-audit --no-fund  # 'npm ci' refuses a lock without the binaries of other platforms
	@touch $@

docs: $(VENV)/.docs ## build the documentation site in build/site; a broken link fails
	@$(BIN)/mkdocs build

$(VENV)/.docs: $(READY) docs/site/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --requirement docs/site/requirements.txt
	@touch $@

RECIPES := $(patsubst tests/recipes/%.txt,%,$(wildcard tests/recipes/*.txt))

recipes: $(RECIPES:%=build/recipes/%/.ready) ## run the recipes of docs/recipes with the real tools, each in an environment of its own
	@$(BIN)/python -m pytest -q --long tests/recipes

build/recipes/%/.ready: tests/recipes/%.txt pyproject.toml | $(READY)
	@"$(PYTHON)" -m venv build/recipes/$*
	@build/recipes/$*/bin/pip install --quiet --disable-pip-version-check --editable '.[sql]' --requirement $<
	@touch $@

pyg: build/pyg ## run the tests of Graph.to_pyg with PyTorch Geometric, in a folder of its own
	@OMNIGRAPH_PYG_TESTS=required PYTHONPATH=build/pyg $(BIN)/python -m pytest -q tests/unit/operations/test_pyg_export.py

build/pyg: | $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $@ torch 'torch_geometric>=2.8,<3'

dist: $(READY) ## write the files of a release to dist: wheels, source distributions, SBOM, conda recipe, checksums
	@rm -rf dist
	@$(BIN)/python scripts/release_files.py

clean: ## remove the set-up and every cache
	rm -rf $(VENV) web/node_modules web/dist .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
