# One virtual environment for all targets, and every target makes what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
LOCK := uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header \
	--no-annotate --no-emit-index-url --no-emit-find-links

.PHONY: install run test acceptance check docs bench screenshots chaos format lock image clean

install: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: install  ## everything on this machine, with a simulated exchange
	$(BIN)/collector up --demo

# Modules are compiled once, not by every process that a test starts.
test acceptance chaos: export PYTHONDONTWRITEBYTECODE :=

test: install  ## what a developer runs all day
	$(BIN)/python -m pytest -m "not s3" --numprocesses 4 --dist worksteal

acceptance: install  ## the long proof: real processes, kill -9, outages, a browser, an object store, all examples
	PROPERTY_EXAMPLES=all $(BIN)/python -m pytest tests -m "proof or s3" --timeout 600 --numprocesses 2 --dist loadfile

check: install  ## format, lint (Python, JavaScript), types, import rule, deployment files, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/oxfmt --check api/dashboard/static
	$(BIN)/oxlint api/dashboard/static
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/kubernetes-validate --strict --kubernetes-version 1.33 kubernetes/collector.yaml kubernetes/autoscaler.yaml
	$(BIN)/hadolint Dockerfile Dockerfile.fxcm
	$(MAKE) --no-print-directory docs
	@if command -v promtool >/dev/null; then \
		promtool check config --syntax-only monitoring/prometheus.yml && promtool check rules monitoring/alerts.yml && promtool test rules monitoring/alerts_test.yml; \
	elif [ -n "$$CI" ]; then echo "promtool is missing" >&2; exit 1; \
	else echo "promtool is not installed: Prometheus' files were NOT checked" >&2; fi

# Every warning is an error: a link that leads nowhere, a page that is in no list.
docs: install  ## the documentation as a site in build/docs, links checked
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 -c docs/site . build/docs

# `make bench lake` measures the lake alone: what follows `bench` names benchmarks, not targets.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
BENCHMARKS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(if $(BENCHMARKS),$(eval .PHONY: $(BENCHMARKS))$(eval $(BENCHMARKS): ;@:))
endif

bench: install  ## ratios, printed; `make bench lake` for one of them; see tests/bench
	$(BIN)/python -m tests.bench $(BENCHMARKS)

screenshots: install  ## of every view, light and dark, desk and phone; needs Chromium
	$(BIN)/python -m tests.browser.screenshots

chaos: install  ## the fault suite at full length
	COLLECTOR_CHAOS=long $(BIN)/python -m pytest tests/acceptance --timeout 3600

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/oxfmt api/dashboard/static

lock:  ## rewrite the lock files from pyproject.toml (needs uv): for developers, the image, its wheel
	$(LOCK) --extra embedded --extra dev pyproject.toml --output-file requirements.lock
	$(LOCK) --constraint requirements.lock --extra s3 pyproject.toml --output-file requirements-run.lock
	$(LOCK) --constraint requirements.lock --group build --output-file requirements-build.lock

image:  ## the image of the fleet, which knows its commit (needs Docker)
	docker build --build-arg COLLECTOR_COMMIT="$$(git rev-parse HEAD)" --tag collector:$(VERSION) .

clean:
	rm -rf .venv
