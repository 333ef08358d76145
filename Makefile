# Everything runs in .venv, which the first target that needs it creates with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo browser test attack hostile storm mutants lint clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/engram demo --out demo

# A browser for the tests of the pages; without one they are skipped and say so.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	    || command -v google-chrome >/dev/null; then :; \
	elif ! command -v apt-get >/dev/null; then \
	    echo "browser: there is no apt-get here; install chromium yourself to test the pages"; \
	elif [ "$$(id -u)" != 0 ]; then \
	    echo "browser: only root can install it: sudo apt-get install chromium"; \
	else apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium \
	    || echo "browser: chromium could not be installed; the tests of the pages are skipped"; fi

# Three processes: two cores are busy while servers, browsers and clusters start.
test: $(STAMP) lint
	$(BIN)/python -m pytest -rs -n 3 --dist worksteal tests

N ?= 1000
attack: $(STAMP)
	$(BIN)/python tests/attack/attack_run.py --cases $(N)

hostile: $(STAMP)
	$(BIN)/python tests/hostile/hostile_run.py --out benchmarks/results/hostile.md

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
