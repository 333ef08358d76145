# Everything runs in .venv, which the first target that needs it creates with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test attack storm mutants lint clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/engram demo --out demo

test: $(STAMP) lint
	$(BIN)/python -m pytest

N ?= 1000
attack: $(STAMP)
	$(BIN)/python tests/attack/attack_run.py --cases $(N)

KILLS ?= 100
PG_KILLS ?= 20
storm: $(STAMP)
	$(BIN)/python tests/integration/campaign_storm.py --kills $(KILLS) --pg-kills $(PG_KILLS)

mutants: $(STAMP)
	$(BIN)/python tests/mutants/mutants.py --out benchmarks/results/mutants.md

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache
