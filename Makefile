# Each target sets up its own .venv on first use, and again when pyproject.toml changes.
# Needed beforehand: Python 3.11 or newer, and make.

PYTHON ?= python3
# One exact version, and before everything else: a range lets pip choose a build of several GB.
TORCH ?= torch==2.13.0

BIN := .venv/bin
# Byte code is compiled when a module is first imported: most of torch's modules never are.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile
READY := .venv/.ready
TOOLS := .venv/.tools

# Many containers set it; without byte code every process that a test starts compiles torch and transformers again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo demo-long test check bench smoke fuzz soak transformers-tests cross wheel clean
.DEFAULT_GOAL := check

setup: $(TOOLS)

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) "$(TORCH)"
	$(INSTALL) --editable .
	touch $@

# What tests, lint, types and benchmarks need besides.
$(TOOLS): $(READY)
	$(INSTALL) --editable ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/python -m attnlab demo

# The demo with ten times the updates: the words of its headline hold.
demo-long: $(READY)
	$(BIN)/python -m attnlab demo --long

# One thread a worker, so that the two workers do not fight over the cores; files in the order of tests/conftest.py.
test: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

check: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory test

bench: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

# Every recipe with its smallest budget, and the notebooks: seven minutes on two cores.
smoke: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.smoke
	ATTNLAB_SOAK=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/test_notebooks.py

# 20,000 broken inputs through the command line: no traceback, no hang, nothing left behind. SEED=N gives others.
fuzz: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seed $(or $(SEED),0)

# Fifty runs, and twenty times a study without and with a search, killed with -9 at random moments and started again
# until they end; a study on a cluster of which a node is killed; 300 damages to files of every kind; and the whole
# catalog in audits, models and kernels, of which `make test` takes a part, and 1,500 random mechanisms in every kernel.
soak: $(TOOLS)
	ATTNLAB_SOAK=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/audits/test_catalog.py tests/install/test_ecosystem.py \
		tests/audits/in_model/test_installed.py tests/install/test_catalog.py tests/install/test_choices.py \
		tests/kernels/test_parity.py tests/kernels/test_random.py
	ATTNLAB_SOAK=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/cli/test_real_disks.py
	ATTNLAB_SOAK=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/studies/test_fair.py
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.training.test_kills 50
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies.test_kills 20
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies.test_kills 20 search
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies.test_ray
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.test_damage 300

# transformers' own model tests, without and with a mechanism; TRANSFORMERS is a clone at the installed version.
transformers-tests: $(TOOLS)
	OMP_NUM_THREADS=1 $(BIN)/python tests/install/transformers_suite.py $(TRANSFORMERS)

# The compiled loops for every instruction set; AArch64 with g++-aarch64-linux-gnu and qemu-user.
cross: $(TOOLS)
	$(BIN)/python -m pytest -q -rs tests/kernels/cpu/test_variants.py

# With prebuilt loops for x86-64 and, if g++-aarch64-linux-gnu is installed, AArch64.
wheel: $(TOOLS)
	$(BIN)/python -m hatchling build -t wheel

clean:
	rm -rf build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
