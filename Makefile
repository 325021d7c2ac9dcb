# make demo   the main job on embedded data      make test    ruff, mypy, pytest (`make long`: the longest tests)
# make bench  the benchmarks, reports beside     make quick   the tests of one minute
# make faults  kills, full disks and damage, many times; a table of what was survived
# make showcase-packages  Debian's packages: tables by apt, trainings, rankings, pictures (docs/showcase-packages.md)
# make showcase-genes  annotations of genes over two releases (docs/showcase-genes.md)
# make package  the wheel and the source distribution, in dist/
# make docs   the documentation site, into build/site
# make page   the explorer of `gatas serve`, from web/ (needs Node.js; what it builds is in the repository)
PYTHON ?= python3
BIN := .venv/bin
# Everything is installed once, from pinned versions; a change of the pins or of the dependencies installs again.
READY := .venv/.ready

.PHONY: demo showcase-packages showcase-genes test long quick check bench faults package docs docs-serve page format clean

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gatas needs Python 3.11 or newer, and $(PYTHON) is older: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv: a few minutes, once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@echo "Compiling kernels: half a minute, once."
	@rm -rf .venv/warm
	@for recipe in digits kinship; do \
	  $(BIN)/gatas train $$recipe --set training.epochs=1 --out .venv/warm/$$recipe > .venv/warm.log 2>&1 || \
	    { cat .venv/warm.log; exit 1; }; \
	done
	@touch $@

demo: $(READY)
	$(BIN)/gatas demo --out demo

showcase-packages: $(READY)
	$(BIN)/python examples/packages/showcase.py showcase/packages --peers

showcase-genes: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pykeen]'
	$(BIN)/python examples/genes/showcase.py showcase/genes

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# As many tests at a time as there are cores, each with one thread, so that they do not wait for one another.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(shell nproc) --dist worksteal --durations 15

test: check
	@$(BIN)/python -c 'from tests.browser import left_out; print(left_out())'
	$(PYTEST) -m 'not long'

long: $(READY)
	$(BIN)/pytest -m long --durations 15

quick: $(READY)
	$(PYTEST) -m 'not slow and not long'

bench: $(READY)
	$(BIN)/python -m benchmarks.transitions
	$(BIN)/python -m benchmarks.attend
	$(BIN)/python -m benchmarks.encoder
	$(BIN)/python -m benchmarks.training

faults: $(READY)
	$(BIN)/python -m tests.faults --rounds 10

# With PACKAGING=python, by an interpreter that has build, instead of the project's environment. twine checks what PyPI will show.
PACKAGING ?= $(BIN)/python
package: $(if $(filter $(BIN)/python,$(PACKAGING)),$(READY))
	rm -rf dist build
	$(PACKAGING) -m build --quiet
	@if $(PACKAGING) -c 'import twine' 2> /dev/null; then $(PACKAGING) -m twine check --strict dist/*; \
	  else echo "Not checked by twine, which is not installed: $(PACKAGING) -m pip install twine"; fi
	@ls -l dist

# Every link and anchor is checked. The variable silences an advertisement of the theme's.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Opens at 127.0.0.1:8000, and again after each change.
docs-serve: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

page:
	cd web && npm ci && npm run check && npm run build

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist demo showcase web/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
