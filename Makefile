# Two commands: `make demo` and `make test`. Both make .venv first; nothing else is
# assumed but Python 3.11 or newer with venv. `make PYTHON=python3.13 test` picks one.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-all test-kernels lint bench docs package pack clean

demo: $(VENV)/installed
	@$(BIN)/python -m jaxalign demo

# Most of the time goes into compiling: workers share what they have compiled, each taking
# neighbouring tests, whose programs it has traced. `test` has XLA optimise little;
# `test-all` runs the programs that users have.
COMPILED := JAX_COMPILATION_CACHE_DIR=$(abspath $(VENV)/compiled) \
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1

test: $(VENV)/dev
	$(COMPILED) JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not gpu"

# Every test. Again as on a machine of 64 cores with AVX2 alone: those of rooms that divide
# pairs among cores, and the quick ones of the other rooms whose programs XLA compiles or
# that use threads. And, as on one core with SSE4.2 alone, the quick ones of the former.
DIVIDING := database pairs words
COMPILING := $(DIVIDING) similarity triples
SHARING := homology repertoire runtime similarity triples
ALL := $(COMPILED) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
AVX2 := TEST_CORES=64 XLA_FLAGS=--xla_cpu_max_isa=AVX2

test-all: $(VENV)/dev lint test-kernels
	$(ALL) -m "not gpu"
	$(AVX2) $(ALL) -m "not gpu" $(DIVIDING:%=tests/%)
	$(AVX2) $(ALL) -m "not slow and not gpu" $(SHARING:%=tests/%)
	TEST_CORES=1 XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 $(ALL) -m "not slow and not gpu" $(COMPILING:%=tests/%)

# GPU kernels, compiled for six generations: needs no GPU, but JAX's plugin for CUDA 13.
CUDA := $(VENV)-cuda
test-kernels: $(CUDA)/installed
	JAX_PLATFORMS=cpu $(CUDA)/bin/python -m pytest -q -n $(WORKERS) tests/kernels/test_targets.py tests/runtime/test_packs.py

# A pack of programs for GPUs that need not be here: `make TARGET=h100,b200 pack`.
TARGET ?= h100
pack: $(CUDA)/installed
	$(CUDA)/bin/python -m jaxalign warmup --target $(TARGET) -o build/pack

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# The site, in build/site; a warning, of a link that leads nowhere say, is an error.
docs: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[site]"
	$(BIN)/python -m sphinx -W --keep-going --quiet --builder html docs build/site

# What users get: the wheel of the sdist, installed where no checkout is, and the examples
# of its public functions run there.
package: $(VENV)/dev
	rm -rf build/package && mkdir -p build/package
	$(BIN)/python -m build --outdir build/package . > build/package/log.txt
	$(PYTHON) -m venv build/package/venv
	build/package/venv/bin/python -m pip install --quiet --disable-pip-version-check build/package/*.whl pytest pandas pyarrow polars
	cd build/package && venv/bin/jaxalign demo && venv/bin/jaxalign info && venv/bin/python -m pytest -q --doctest-modules --doctest-ignore-import-errors --pyargs jaxalign -o doctest_optionflags=NORMALIZE_WHITESPACE -p no:cacheprovider

bench: $(VENV)/dev
	$(BIN)/python benchmarks/peers.py --quick

$(VENV)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/dev: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/installed

$(CUDA)/installed: pyproject.toml
	test -d $(CUDA) || $(PYTHON) -m venv $(CUDA)
	$(CUDA)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev,kernels]"
	touch $@

clean:
	rm -rf $(VENV) $(CUDA) build *.egg-info
