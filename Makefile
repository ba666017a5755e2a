# `make spirals` reproduces a study, `make test` checks the code; CONTRIBUTING.md names the rest. Each installs what it needs, once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SEEDS ?= 3
OUT ?= out/two-spirals
MUTANTS ?= --count 200

.PHONY: spirals test soak mutants lint bench docs clean

spirals: .venv/installed
	$(BIN)/meristem reproduce two-spirals --seeds $(SEEDS) --models tunnel,budding --out $(OUT)

test: .venv/installed-test lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The random tests with eighty times as many cases as in the suite: about an hour and a half on two cores, at most 8 GiB a process. Each part
# can be run alone (make soak-data); the counts go to results/soak.json.
SOAK := random models data calls surroundings kills double contract devices
SOAK_random := sparse reference compact settle docs runs live cv sklearn_checks reference_trainer trunk estimators regression_losses own_convolution own_feed_forward conv_bodies
SOAK_models := io_refused io_forged run_files
SOAK_data := data_damaged downloads
SOAK_calls := estimator_calls
SOAK_surroundings := surroundings
SOAK_kills := survival signals interrupted_fit tables_resume ray
SOAK_contract := inputs_contract
SOAK_devices := c c_integer c_devices c_models flash_budget

soak: .venv/installed-test
	rm -rf .soak
	$(MAKE) --keep-going $(SOAK:%=soak-%)

soak-%: .venv/installed-test
	mkdir -p .soak
	MERISTEM_SOAK=80 MERISTEM_SOAK_REPORT=$(CURDIR)/.soak $(BIN)/python -m pytest -n 2 $(SOAK_$*:%=tests/test_%.py); \
	status=$$?; MERISTEM_SOAK=80 $(BIN)/python tests/soak.py .soak results/soak.json; exit $$status

soak-double: .venv/installed-test
	JAX_ENABLE_X64=1 $(BIN)/python -m pytest -n 2 tests/test_models.py tests/test_own_body.py tests/test_forward.py tests/test_growth.py tests/test_trunk.py tests/test_compact.py tests/test_compact_ops.py

# The share of random changes to the code that the tests notice, into results/mutants.json: two hours on one core. To continue
# an interrupted run: make mutants MUTANTS='--count 200 --resume'.
mutants: .venv/installed-test
	nice $(BIN)/python tests/mutants.py $(MUTANTS)

lint: .venv/installed-test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# The documentation site, in out/docs/index.html. Warnings are errors; the notebooks are executed.
docs: .venv/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/docs

bench: .venv/installed-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/compact.py
	$(BIN)/python benchmarks/estimator_speed.py
	$(BIN)/python benchmarks/mnist.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'meristem needs Python 3.11 or newer; call make PYTHON=python3.11')"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[cli]'
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) --editable '.[test]'
	touch $@

.venv/installed-bench: .venv/installed
	$(PIP) --editable '.[bench,data]'
	touch $@

.venv/installed-docs: .venv/installed
	$(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf .venv out dist .cache .soak
