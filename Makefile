# `make demo` and `make test` set everything up by themselves; the second call starts at once.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-min lint bench docs notebooks dist clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(STAMP): pyproject.toml tools/setup.sh
	@sh tools/setup.sh $(VENV)
	@touch $@

demo: $(STAMP) ## fit the wine ratings: a table, a picture and a DataTree in pmordinal-demo/
	@$(BIN)/pmordinal demo

test: $(STAMP) ## lint, types and the fast tests
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@$(BIN)/python -m pytest -n auto --dist loadfile

test-all: $(STAMP) ## every test, the slow ones included
	@$(BIN)/python -m pytest -n auto --dist loadfile -m ""

test-min: ## the fast tests with the lowest versions that pyproject.toml allows, on Python 3.12
	@sh tools/test_min.sh $(VENV)-min

lint: $(STAMP) ## rewrite the code in the house format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: $(STAMP) ## time the engines in units of a Cholesky factorisation
	@$(BIN)/python benchmarks/engines.py

docs: $(STAMP) ## build the documentation into docs/_build/html; the first time its notebooks run, for minutes
	@$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

notebooks: $(STAMP) ## write the notebooks as .ipynb files, without outputs
	@$(BIN)/python tools/notebooks.py

dist: $(STAMP) ## build wheel and sdist into dist/
	@$(BIN)/python -m build

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(VENV)-min $(VENV)-min.uv .pytest_cache .mypy_cache .ruff_cache .hypothesis pmordinal-demo docs/_build docs/generated docs/gallery dist
