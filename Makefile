# Two commands do everything: `make reproduce` and `make test`. Both set up .venv first, from the locked versions.
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/.ready

.PHONY: reproduce demo test deep check docs bench lock clean

reproduce: $(READY)
	$(BIN)/duels reproduce

demo: $(READY)
	$(BIN)/duels run bradley-terry:arms=16,spread=0.5 --horizon 1000000 --runs 20 \
		-p rucb -p savage -p interleaved_filter -p btm -p random

# Three workers on two cores: tests of servers and browsers wait for a fifth of their time. Bytecode is always kept, since
# hundreds of child processes would compile the same modules again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

deep: $(READY)
	$(BIN)/python -m pytest -n 2 -m "deep or not deep" --timeout 1800 -o faulthandler_timeout=2000

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(READY)
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/experiment.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/judge.py
	$(BIN)/python benchmarks/votes.py
	$(BIN)/python benchmarks/pages.py
	$(BIN)/python benchmarks/tuning.py
	$(BIN)/python benchmarks/server.py

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Duels needs Python 3.11 or newer, found: $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

# Keeps the versions in requirements.lock unless pyproject.toml rules them out. For newer ones: make lock UPGRADE=--upgrade
lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	printf 'hatchling\neditables\n' | .venv-lock/bin/uv pip compile pyproject.toml - --quiet $(UPGRADE) --all-extras \
		--universal --python-version 3.11 --generate-hashes --no-annotate --no-header --output-file requirements.lock
	printf '%s\n' '# Every version that was tested, with hashes. Written by `make lock`; the Makefile installs it.' | \
		cat - requirements.lock > .venv-lock/lock
	mv .venv-lock/lock requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv docs/_build
