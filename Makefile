PYTHON ?= python3
BIN := .venv/bin

# One test process more than there are processors: servers and browsers wait for each other much of the time.
TEST_PROCESSES ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
SOAK ?= tests

SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help setup run demo test browser lint types bench soak reliability reproduce compare acceptance docs pictures lock clean
.DELETE_ON_ERROR:

help:  ## Say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready  ## Make .venv with exactly the pinned dependencies

.venv/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("restive needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

run: setup  ## The paper's two-state comparison in a small form: a table, a figure, a page
	$(BIN)/restive simulate --problem two-state-v1 --instances 10 --runs 4 --agents 50 --budget 10 --horizon 1000 \
	  --policy all --seed 7 --figure results/two-state.png --page results/two-state.html

demo: results/demo.db  ## Simulated pharmacists in a program, and the server on it, in your browser
	$(BIN)/restive serve --store results/demo.db --browse

results/demo.db: | setup
	@mkdir -p results
	$(BIN)/restive desk demo --name pharmacists --store $@ > /dev/null

test: setup browser lint types  ## Lint, strict types, and every test but the exhaustive ones
	$(BIN)/python -m pytest -m "not soak" -n $(TEST_PROCESSES) --dist worksteal

browser:  ## The browser that tests of the pages drive, and curl, from Debian where they are missing
	@{ command -v chromium || command -v google-chrome; } > /dev/null && command -v curl > /dev/null \
	  || ! command -v apt-get > /dev/null \
	  || { $(SUDO) apt-get update -qq \
	       && $(SUDO) apt-get install -y -qq --no-install-recommends chromium fonts-liberation curl > /dev/null; }

lint: setup  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## Strict types
	$(BIN)/mypy

bench: setup  ## Speed and memory as ratios, measured side by side (keep the machine quiet)
	$(BIN)/python -m benchmarks

soak: setup browser  ## The exhaustive tests; one part: make soak SOAK=tests/desk/test_kills.py
	$(BIN)/python -m pytest -m soak $(SOAK)

reliability: setup  ## Ten minutes more of kills, power cuts and bad tables, and the page of the docs that adds them up
	$(BIN)/python tests/reliability.py --seconds 600

reproduce: setup  ## Every experiment of the paper at full size, and the page of the docs that tells of it
	$(BIN)/restive reproduce --out results/reproduction --markdown docs/reference/results/reproduction.md

compare: setup  ## All online policies on some twenty scenarios at full size, and the page of the docs that tells of it
	$(BIN)/restive compare --out results/comparison --markdown docs/reference/results/compared.md
	$(BIN)/restive compare --calibration --markdown docs/reference/results/calibration.md

acceptance: setup  ## Everything that is said from logs, checked at full size, and the page of the docs that tells of it
	$(BIN)/restive check-logs --out results/check-logs --markdown docs/reference/results/acceptance.md

docs: setup  ## The documentation site, in results/site; its search works offline
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs results/site

pictures: setup browser  ## The pictures of the documents: every page of the product, and the figure of the README
	$(BIN)/python docs/make_pictures.py

lock:  ## Pin the dependencies again (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --quiet --output-file requirements.lock

clean:  ## Remove what was made, but for results
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
