# One virtual environment, one lock file. Every target makes what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: install run test acceptance check bench chaos format lock clean

install: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: install  ## everything on this machine, with a simulated exchange
	$(BIN)/collector up --demo

test: install  ## what a developer runs all day
	$(BIN)/python -m pytest

acceptance: install  ## the long proof: real processes, kill -9, outages
	$(BIN)/python -m pytest tests/acceptance --timeout 600

check: install  ## format, lint, types, import rule, deployment files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/hadolint Dockerfile

bench: install  ## ratios, printed; see tests/bench
	$(BIN)/python -m tests.bench

chaos: install  ## the fault suite at full length
	COLLECTOR_CHAOS=long $(BIN)/python -m pytest tests/acceptance --timeout 3600

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock:  ## rewrite requirements.lock from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate --extra embedded --extra dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv
