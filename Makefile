# `make` or `make help` lists the targets: those with a `##` line.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Hundreds of commands, and each process of tests, read what one of them has compiled.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# The first interpreter of a version that requirements.txt has wheels for.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && \
	echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -type f -not -path '*/tests/*')

# What `make run` compares: an office behind the plain buffer of its modem and three active queues.
OFFICE := scenarios/office.toml
QUEUES := {kind="droptail",limit="407 packets"},codel,pie,fq-codel
COMPARE := $(BIN)/aqmlab compare $(OFFICE) --seeds 1..5 --out out/office \
	--vary 'discipline=$(QUEUES)'
DRAW := $(BIN)/aqmlab plot cdf out/office --class pages

.PHONY: help
help:  ## this list
	@echo 'make TARGET, where TARGET is one of'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: $(STAMPS)/extension  ## the command .venv/bin/aqmlab; PROFILE=release takes twice the time, and its runs a sixth less

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

$(STAMPS)/requirements-extras: requirements-extras.txt $(STAMPS)/requirements
	$(PIP) install --requirement requirements-extras.txt
	@touch $@

$(STAMPS)/requirements-dev: requirements-dev.txt $(STAMPS)/requirements-extras
	$(PIP) install --requirement requirements-dev.txt
	@touch $@

$(STAMPS)/requirements-docs: requirements-docs.txt $(STAMPS)/requirements-dev
	$(PIP) install --requirement requirements-docs.txt
	@touch $@

$(STAMPS)/requirements-wheels: requirements-wheels.txt $(STAMPS)/requirements
	$(PIP) install --requirement requirements-wheels.txt
	@touch $@

# Another profile than that of the last build makes the extension again.
PROFILE ?= quick
$(STAMPS)/profile-$(PROFILE): $(STAMPS)/venv
	@rm -f $(STAMPS)/profile-* && touch $@

# The simulator is the extension without the live bed, in three quarters of the time.
$(STAMPS)/simulator: FEATURES := --no-default-features
$(STAMPS)/simulator $(STAMPS)/extension: pyproject.toml $(RUST_SOURCES) $(STAMPS)/requirements $(STAMPS)/profile-$(PROFILE)
	@touch $@.begun  # what changes while it builds is newer than the stamp
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(PROFILE) --quiet $(FEATURES)
	@mv $@.begun $@

.PHONY: extras
extras: build $(STAMPS)/requirements-extras  ## what `aqmlab tune`, compiled plug-ins and frames need besides, 450 MB

.PHONY: run
run: $(STAMPS)/$(if $(wildcard $(STAMPS)/extension),extension,simulator)  ## build all but the live bed, then compare four queues in the same office: README's table and figure
	$(COMPARE)
	$(DRAW) -o out/office.svg
	$(BIN)/aqmlab report out/office --brief -o out/answer.html
	@printf '%s\n' '' 'Next:' \
		'  $(BIN)/aqmlab                            examples' \
		'  $(BIN)/aqmlab init my.toml --kind home   a scenario of your own link' \
		'  out/answer.html                             the answer as one page' \
		'  $(BIN)/aqmlab report out/office          all numbers and figures' \
		'  docs/tutorial.md                            to a decision, in ten minutes' \
		'  make build                                  adds real kernels: aqmlab shell, live runs'

.PHONY: test test-rust test-python
test: test-rust test-python  ## every test, except those of the three targets below; under 20 minutes on two cores from a clean checkout
	@echo "make test: $$(cat $(STAMPS)/test-rust) in the tests of the crates, $$(cat $(STAMPS)/test-python) in those of Python"

test-rust:  ## the tests of the crates
	@mkdir -p $(STAMPS); TIMEFORMAT='%R s (%U s of CPU)'; { time CARGO_INCREMENTAL=0 cargo test --profile quick --locked --quiet 2>&3; } 3>&2 2>$(STAMPS)/test-rust

# Tests in real time wait more than they compute: one after the other, beside all others. A file of
# tests stays in one process: its tests may share what takes long to make. Status 5: no test is meant.
APART := tests/test_extending.py tests/test_site.py
REAL_TIME := tests/test_live.py tests/test_capture_field.py $(wildcard tests/test_shell*.py)
PYTEST := $(BIN)/python -m pytest --durations 10
OTHERS := --numprocesses logical --maxprocesses 8 --dist loadfile $(patsubst %,--ignore %,$(APART) $(REAL_TIME))
test-python: build $(STAMPS)/requirements-docs  ## the tests of the Python package and of the documentation
	@TIMEFORMAT='%R s (%U s of CPU)'; { time { \
		$(if $(findstring .py,$(ARGS)),true,$(PYTEST) $(REAL_TIME) $(ARGS)) >$(STAMPS)/real-time 2>&1 & status=0; \
		nice -n 10 $(PYTEST) $(OTHERS) -m 'not long' $(ARGS) 2>&3 || [ $$? = 5 ] || status=1; \
		wait $$! || [ $$? = 5 ] || status=1; cat $(STAMPS)/real-time; (exit $$status); \
	}; } 3>&2 2>$(STAMPS)/test-python

.PHONY: test-extending test-long test-site
test-extending: build $(STAMPS)/requirements-dev  ## what docs/extending.md adds to a copy of the checkout, built and run
	$(BIN)/python -m pytest tests/test_extending.py $(ARGS)

test-long: build $(STAMPS)/requirements-docs  ## tests of more than 2 s of processor time: whole cards, most planted faults, long pages of the documentation
	$(PYTEST) $(OTHERS) -m long $(ARGS)
	cargo test --profile quick --locked --quiet -p aqmlab-parquet --features arrow schemas  # what Arrow itself writes

test-site: build $(STAMPS)/requirements-docs  ## the documentation site in a browser
	$(BIN)/python -m pytest tests/test_site.py $(ARGS)

.PHONY: wheel wheel-pgo test-wheel
wheel: $(STAMPS)/requirements  ## the wheel in dist, with scenarios, papers, and the playground if it was built
	rm -rf dist
	@[ -f python/aqmlab/shipped/playground/index.html ] || \
		echo 'wheel: WITHOUT THE PLAYGROUND, which was not built: make playground, which needs Node' >&2
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --quiet --out dist

# Two builds of our crates and a minute of runs between them.
wheel-pgo: $(STAMPS)/requirements  ## the wheel in dist, by the profile of some runs; needs rustup's llvm-tools
	$(BIN)/python -m lab.pgo

# Of the profile of `make build`, whose crates are there; `make test-wheels` tries those of a release.
TRIED := target/wheel
test-wheel: build  ## a wheel in an empty environment, outside of the checkout
	rm -rf $(TRIED)
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --profile $(PROFILE) --quiet --out $(TRIED)
	$(BIN)/python .ci/wheel.py $(TRIED)/*.whl

# For other systems, cross-built by zig.
.PHONY: wheels test-wheels foreign
PLATFORMS ?= manylinux_2_28_x86_64 manylinux_2_28_aarch64 musllinux_1_2_x86_64 musllinux_1_2_aarch64
wheels: $(STAMPS)/requirements-wheels  ## wheels for glibc 2.28 and musl, x86-64 and aarch64; PLATFORMS=musllinux_1_2_x86_64 for one
	$(BIN)/python .ci/wheels.py build $(PLATFORMS)

test-wheels: $(STAMPS)/requirements-wheels  ## those in dist: their tags, what they link with, and runs where there is a Python
	$(BIN)/python .ci/wheels.py try $(PLATFORMS)

foreign: $(STAMPS)/requirements-wheels  ## what test-wheels needs of them, on Debian: a Python of another processor, musl
	$(BIN)/python .ci/foreign.py $(PLATFORMS)

.PHONY: release-check sbom
release-check: $(STAMPS)/venv  ## whether the version in Cargo.toml may be tagged; docs/releasing.md
	$(BIN)/python .ci/release.py --tag v$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

sbom: $(STAMPS)/venv  ## what the wheel is made of and needs, in out/aqmlab.cdx.json (CycloneDX)
	$(BIN)/python .ci/release.py --sbom out/aqmlab.cdx.json

# The wheels and the site take in the page, so it comes first.
.PHONY: release
release:  ## everything that a release publishes, in dist, and each file checked apart from the checkout
	$(MAKE) playground
	$(MAKE) site wheels
	$(MAKE) test-wheels
	$(BIN)/python .ci/bundle.py make
	$(BIN)/python .ci/bundle.py check

.PHONY: lint
lint: build structure prose $(STAMPS)/requirements-dev  ## formatters, linters, types and structure, as CI wants them
	cargo fmt --check
	cargo clippy --profile quick --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: structure
structure: $(STAMPS)/requirements  ## circles of files, crates that depend upwards
	$(BIN)/python .ci/structure.py

.PHONY: prose
prose: $(STAMPS)/venv  ## phrases that are hard to read, and better ones; ARGS=FILE for one
	$(BIN)/python .ci/prose.py $(ARGS)

.PHONY: msrv
msrv: $(STAMPS)/venv  ## whether the least Rust version is the one that is stated
	$(BIN)/python .ci/msrv.py

# What cannot be checked is said; nothing is skipped in silence.
.PHONY: deny
deny: $(STAMPS)/requirements  ## licences and origin of what we link, yanked versions, known vulnerabilities
	@if ! cargo deny --version >/dev/null 2>&1; then \
		echo 'deny: LICENCES NOT CHECKED: cargo-deny is not installed (cargo install cargo-deny --locked)' >&2; \
	else \
		cargo deny --locked check --hide-inclusion-graph licenses sources bans; \
	fi
	$(BIN)/python .ci/audit.py

# Newer versions within what Cargo.toml allows, then everything that a change must pass.
.PHONY: update
update: $(STAMPS)/requirements-docs  ## newer crates and packages, records/dependencies.md, then every check
	cargo update
	cargo update --manifest-path fuzz/Cargo.toml
	cargo fetch --locked  # what is stated of crates below is read without a network
	$(BIN)/python .ci/newer.py
	$(MAKE) $(STAMPS)/requirements-docs
	$(BIN)/python .ci/dependencies.py --write
	$(BIN)/python .ci/audit.py --note
	.ci/run

.PHONY: fuzz
MINUTES ?= 10
fuzz: $(STAMPS)/requirements-dev  ## every fuzz target for MINUTES together; fuzz/README.md
	$(BIN)/python fuzz/run.py --minutes $(MINUTES) $(ARGS)

.PHONY: format
format: $(STAMPS)/requirements-dev  ## format Rust and Python
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: docs
docs:  ## the documentation of the crates, in target/doc
	RUSTDOCFLAGS='-D warnings' cargo doc --profile quick --workspace --no-deps --locked

.PHONY: site
site: build $(STAMPS)/requirements-docs  ## the documentation site, in out/site/html; a warning is an error
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'the site needs Python 3.11 or newer; the other targets do not' >&2; exit 1; }
	$(BIN)/python docs/site/build.py

# The playground. Only its own targets need Node and the compiler's target for WebAssembly.
WASM := target/wasm32-unknown-unknown/wasm/aqmlab_wasm.wasm
# Messages of failures name files of crates, without the folder that this machine keeps them in.
SOURCES := $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src/

BUILD_WASM := CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS='--remap-path-prefix=$(SOURCES)=' \
	cargo build --locked --profile wasm --target wasm32-unknown-unknown -p aqmlab-wasm

.PHONY: playground playground-tools test-playground
playground: playground-tools  ## the simulator in the browser, in site/playground: open index.html
	cargo build --locked --release --manifest-path web/bindgen/Cargo.toml --target-dir target/bindgen
	$(BUILD_WASM)
	target/bindgen/release/aqmlab-bindgen $(WASM) web/pkg
	@# The second engine, which the page loads only for who asks for it.
	$(BUILD_WASM) --features more
	target/bindgen/release/aqmlab-bindgen $(WASM) web/pkg/more
	cd web && npx vite build --logLevel warn
	node web/check_sizes.mjs
	@# A copy: what the wheel takes in. maturin stops at a link that leads nowhere.
	rm -rf python/aqmlab/shipped/playground
	cp -r site/playground python/aqmlab/shipped/
	@echo site/playground/index.html

playground-tools:
	@node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null || \
		{ echo 'the playground needs Node 20.19 or newer (https://nodejs.org); the other targets do not' >&2; exit 1; }
	@if command -v rustup >/dev/null; then rustup target add --toolchain "$$(rustc --version | cut -d" " -f2)" wasm32-unknown-unknown; fi
	@[ -d "$$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ] || \
		{ echo 'the playground needs the Rust target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown)' >&2; exit 1; }
	@# What the lock file says; `npm ci` refuses a lock file without the packages of other systems.
	cd web && npm install --no-save --no-audit --no-fund --silent

test-playground: playground  ## its engine beside the native one, its stories, and the page in Chromium
	cargo build --locked --profile quick -p aqmlab-wasm --features native --examples
	cd web && npm run --silent check && npm test --silent

.PHONY: reproduce reproduce-quick
reproduce: build  ## every paper: run what is missing, write docs/fidelity.md and its reports
	$(BIN)/aqmlab reproduce all $(ARGS)
	cp -r out/reproduce/pages/. .

# Orderings only, under a quarter of an hour on two cores: docs stay as they are.
reproduce-quick: build  ## the same with short runs and one seed
	$(BIN)/aqmlab reproduce all --quick --out out/reproduce-quick $(ARGS)

.PHONY: validate
validate: build  ## what each discipline's paper promises: docs/validation.md; ARGS="pi rem" for some
	@[ out/validate/runs -nt python/aqmlab/_native.abi3.so ] || rm -rf out/validate/runs  # of another engine
	$(BIN)/python -m lab.disciplines.validate $(ARGS)

.PHONY: baselines
baselines: build  ## the baselines of report cards, which ship with the package; ARGS="--tier quick"
	$(BIN)/python -m aqmlab.cards.renew $(ARGS)

.PHONY: worst
worst: build $(STAMPS)/requirements-dev  ## the worst scenarios of well-known queues and controls: scenarios/worst; ARGS="pie"
	$(BIN)/python -m aqmlab.cards.renew_worst $(ARGS)
	AQMLAB_REWRITE=1 $(BIN)/python -m pytest tests/test_worst.py -q -k page

.PHONY: responsiveness
responsiveness: build  ## does RPM show what users feel? docs/responsiveness.md; ARGS=--data draws it again
	$(BIN)/python -m lab.responsiveness $(ARGS)

.PHONY: leaderboard
leaderboard: build $(STAMPS)/requirements-dev  ## the cards of every queue and control side by side: docs/leaderboard.md
	$(BIN)/aqmlab evaluate all --out out/cards $(ARGS)
	$(BIN)/aqmlab evaluate all-controls --out out/cards $(ARGS)
	cp out/cards/leaderboard.csv out/cards/controls.csv docs/
	AQMLAB_REWRITE=1 $(BIN)/python -m pytest tests/test_leaderboard.py -q -k page

.PHONY: figures
figures: build  ## the figure of README.md
	rm -rf out/office  # runs of another version would be drawn, too
	$(COMPARE) >/dev/null
	$(DRAW) -o docs/images/office.svg

.PHONY: gallery
gallery: build $(STAMPS)/requirements-dev  ## the pictures of docs/gallery.md, by the commands of the page
	AQMLAB_REWRITE=1 $(BIN)/python -m pytest tests/test_docs.py -q -k 'page and gallery'

.PHONY: bench bench-micro bench-peers bench-plugins
bench:  ## what the engine costs: ARGS=--quick, --memory, --save; docs/benchmarks.md
	$(PYTHON) -m lab.bench $(ARGS)

bench-micro:  ## what single parts of it cost
	cargo bench --locked -p aqmlab-benches -- $(ARGS)

bench-peers: build  ## what a packet costs here, in ns-2 and in ns-3; the table is kept in out/bench-peers.md: docs/other-tools.md
	$(BIN)/python -m lab.peers.speed $(ARGS)

bench-plugins: build $(STAMPS)/requirements-dev  ## what algorithms in Python, numba and C cost beside native ones, and environments for learning
	$(BIN)/python -m lab.plugins $(ARGS)

.PHONY: coverage
coverage: build  ## how often intervals hold the true mean: the tables of records/coverage.md; ARGS=--write
	$(BIN)/python -m lab.intervals $(ARGS)

.PHONY: fidelity-modern
fidelity-modern: build  ## the modern queues beside published figures: every line of records/fidelity-modern.md
	cargo test --profile quick -p aqmlab-aqm --locked --lib -- dualpi2 cobalt cake
	$(BIN)/python -m pytest tests/test_modern.py -q $(ARGS)

.PHONY: quic-witness
quic-witness: build  ## our QUIC beside quinn and our TCP, 216 settings, some minutes: records/quic.md
	$(BIN)/python -m lab.quic $(ARGS)

.PHONY: soak
soak: build $(STAMPS)/requirements-dev  ## long and large work, about an hour: docs/reliability.md; ARGS="--scale 0.1 sweep"
	$(BIN)/python -m lab.soak $(ARGS)

.PHONY: peers-fidelity
peers-fidelity: build  ## goodput, loss and queue beside ns-2 and ns-3 (Debian: apt-get install ns2 libns3-dev): records/peers-fidelity.md
	@[ out/peers-fidelity -nt python/aqmlab/_native.abi3.so ] || rm -rf out/peers-fidelity  # of another engine
	$(BIN)/python -m lab.peers.fidelity $(ARGS)

.PHONY: card-rows
card-rows: build  ## ten tests of the card in ns-3 and, as root, on the live bed: records/card-rows.md; ARGS=ns-3 or live for one
	$(BIN)/python -m lab.card_rows $(ARGS)

.PHONY: mutants
mutants: $(STAMPS)/venv  ## what share of small changes to aqm, tcp, link and record their tests notice: records/mutants.md; hours, ARGS="--sample 2"
	$(BIN)/python -m lab.mutants $(ARGS)

# Apart from `make test`: they need namespaces, a quiet machine and an hour.
.PHONY: test-live
test-live: build $(STAMPS)/requirements-dev  ## the live bed and the shell's bounds on this machine's kernel; an hour
	AQMLAB_LIVE=full $(BIN)/python -m pytest tests/test_live.py tests/test_shell_bounds.py -rs

# Debian: qemu-user-static, gcc-aarch64-linux-gnu; and: rustup target add aarch64-unknown-linux-gnu
.PHONY: test-aarch64
test-aarch64:  ## the results of every pinned run on another processor, emulated
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
	cargo test --locked --release --target aarch64-unknown-linux-gnu -p aqmlab-sim --test it behaviour $(ARGS)

# Simulator alone: the live bed and the shell are Linux's. It compiles and links nothing.
.PHONY: check-portable
PORTABLE := x86_64-pc-windows-gnu aarch64-apple-darwin
check-portable:  ## whether the simulator's crates compile for Windows and macOS
	@if command -v rustup >/dev/null; then \
		rustup target add --toolchain "$$(rustc --version | cut -d" " -f2)" $(PORTABLE); fi
	cargo check --locked $(PORTABLE:%=--target %) -p aqmlab-sim -p aqmlab-wasm

.PHONY: live-compare
live-compare: build  ## the simulator against the kernel, as root; an hour of live runs
	$(BIN)/python -m lab.live.compare $(ARGS)

# As root; elsewhere one line says why nothing is played, and the status is 2.
.PHONY: kernel-scripts kernel-diff
kernel-scripts: build  ## packet scripts of profile linux on this machine's kernel, as root: records/kernel-scripts.md; ARGS=FILE for one
	$(BIN)/python -m lab.kernel.scripts $(ARGS)

kernel-diff: build  ## random transfers of our end point beside this machine's kernel, as root: ARGS="--seeds 1..100"
	cargo build --locked --quiet --profile quick -p aqmlab-tcp --example transfer
	$(BIN)/python -m lab.kernel.diff $(ARGS)

.PHONY: predict-worlds
predict-worlds: build  ## predictions out of captures held against known worlds: records/predict.md
	$(BIN)/python -m lab.predict

.PHONY: capture-places
capture-places: build  ## captures of one path from many places, as root: each must say what passed
	$(BIN)/python -m lab.capture_places

.PHONY: capture-field
capture-field: build  ## captures by tcpdump and dumpcap of a link whose truth is known, as root
	$(BIN)/python -m lab.capture_field

.PHONY: clean
clean:  ## remove what was built
	rm -rf $(VENV) target
