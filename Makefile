# make build   the command .venv/bin/aqmlab
# make run     build, then compare drop-tail with RED under the same web users
# make test    every test; make lint, make docs: the checks of .ci/run
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build
.PHONY: build run test test-rust test-python lint format docs reproduce reproduce-quick validate figures clean

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# The first interpreter of a version that requirements.txt has wheels for.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && \
	echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -type f -not -path '*/tests/*')

QUICKSTART := scenarios/quickstart.toml
# The two queues that `make run` compares. What differs from the scenario is the forward queue.
QUEUES := {kind = "droptail", limit = "120 packets"}, \
	{kind = "red", min_th = "30 packets", max_th = "90 packets", max_p = 0.1, limit = "480 packets", gap = "altq"}
COMPARE := $(BIN)/aqmlab compare $(QUICKSTART) --vary 'topology.bottleneck.forward.discipline=$(QUEUES)'

build: $(STAMPS)/extension

$(STAMPS)/venv:
	@[ -n "$(PYTHON)" ] || { echo 'aqmlab needs Python 3.10 to 3.14; found none (PYTHON=... names another one)' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "aqmlab needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo '$(PYTHON) has no venv module; on Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@command -v cargo >/dev/null || \
		{ echo 'aqmlab needs Rust 1.88 or newer, and cargo is not on the PATH; see https://rustup.rs' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/requirements: requirements.txt $(STAMPS)/venv
	$(PIP) install --requirement requirements.txt
	@touch $@

$(STAMPS)/requirements-dev: requirements-dev.txt $(STAMPS)/requirements
	$(PIP) install --requirement requirements-dev.txt
	@touch $@

$(STAMPS)/extension: pyproject.toml $(RUST_SOURCES) $(STAMPS)/requirements
	@touch $@.begun  # what changes while it builds is newer than the stamp
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@mv $@.begun $@

run: build
	$(COMPARE)

test: test-rust test-python

test-rust:
	cargo test --locked --quiet

test-python: build $(STAMPS)/requirements-dev
	$(BIN)/python -m pytest

lint: build $(STAMPS)/requirements-dev
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Circles of files in a crate, and crates that depend upwards
.PHONY: structure
structure: $(STAMPS)/venv
	$(BIN)/python .ci/structure.py

format: $(STAMPS)/requirements-dev
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs:
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked

# Every paper: what is missing is run, then docs/fidelity.md and the reports that it links are written anew
reproduce: build
	$(BIN)/aqmlab reproduce all $(ARGS)
	cp out/reproduce/pages/*.md docs

# The same with short runs and one seed, under a quarter of an hour on two cores: orderings only, docs stay as they are
reproduce-quick: build
	$(BIN)/aqmlab reproduce all --quick --out out/reproduce-quick $(ARGS)

# Each discipline's headline behaviour: docs/validation.md; ARGS="pi rem" for some of them
validate: build
	@[ out/validate/runs -nt python/aqmlab/_native.abi3.so ] || rm -rf out/validate/runs  # of another engine
	$(BIN)/python -m aqmlab.validate $(ARGS)

figures: build
	mkdir -p docs/images
	$(COMPARE) -o docs/images/quickstart.svg
	$(COMPARE) -o docs/images/quickstart.png

clean:
	rm -rf $(VENV) target

# What the engine costs: ARGS=--quick, --memory, --save, see docs/benchmarks.md
.PHONY: bench bench-micro
bench:
	$(PYTHON) benches/bench.py $(ARGS)

bench-micro:
	cargo bench --locked --bench '*' -- $(ARGS)

# What a packet costs here and in ns-2 and ns-3, where they are installed: ARGS=--quick, see docs/peers.md
.PHONY: bench-peers
bench-peers:
	$(PYTHON) benches/peers/compare.py $(ARGS)

# The live bed on this machine's kernel, as root; what it lacks is said. About half an hour.
.PHONY: test-live
test-live: build $(STAMPS)/requirements-dev
	AQMLAB_LIVE=full $(BIN)/python -m pytest tests/test_live.py -rs

# The simulator against the kernel, as root: an hour of live runs, those that are there count again
.PHONY: live-compare
live-compare: build
	$(BIN)/python -m aqmlab.live_compare $(ARGS)
