# Set-up, demo and checks. Everything is installed into .venv; nothing outside this folder is touched,
# except that root on a Debian without python3-venv gets that package.

# The first of these that runs (a name on PATH may be a shim without a Python behind it) and is supported.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	"$$python" -c '$(SUPPORTED)' 2>/dev/null && { echo "$$python"; break; }; done)
VENV := .venv
# More extras than the tests need everywhere: make test EXTRAS=dev,device also plays through sound devices.
EXTRAS ?= dev
BIN := $(VENV)/bin
# Tests in which nothing is paced by the clock: two at a time. All others have the machine to themselves.
SIDE_BY_SIDE := $(addprefix tests/,captures fuzz project rig_agents rig_bank rig_bank_import rig_bank_rendering rig_checks \
	rig_cli rig_config rig_importing rig_prompts rig_report rig_report_compare rig_report_html rig_scoring rig_stats)
READY := $(VENV)/.ready
FAIL = { echo "error: $(1)" >&2; exit 1; }

# A Python named by the user replaces an environment made with another one.
ifneq ($(filter command% environment%,$(origin PYTHON)),)
VERSION := import sys; print(sys.version)
ifneq ($(shell "$(BIN)/python" -c '$(VERSION)' 2>/dev/null),$(shell "$(PYTHON)" -c '$(VERSION)' 2>/dev/null))
$(READY): replace
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo test bench constraints clean replace $(VENV)

help:
	@echo "make demo         stream the demo bank to the embedded agents and print the report"
	@echo "make test         formatting, types, import rules and all tests"
	@echo "make bench        benchmarks; prints figures, judges nothing"
	@echo "make $(VENV)        only set up the environment that the others use"
	@echo "make constraints  pin the newest releases anew (needs uv)"
	@echo "make clean        remove the environment, caches and builds; runs/ stays"
	@echo "PYTHON=/path/to/python chooses the interpreter (3.11 to 3.13)."

demo: $(READY)
	@$(BIN)/rig demo

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(SIDE_BY_SIDE)
	$(BIN)/python -m pytest $(addprefix --ignore=,$(SIDE_BY_SIDE))

bench: $(READY)
	@set -e; for script in $(filter-out tests/benchmarks/test_%,$(wildcard tests/benchmarks/*.py)); do echo "== $$script"; $(BIN)/python "$$script"; done

$(VENV): $(READY)

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || $(call FAIL,no Python 3.11 to 3.13 found; install one or name it: make PYTHON=/path/to/python)
	@"$(PYTHON)" -c '$(SUPPORTED)' 2>/dev/null || $(call FAIL,$(PYTHON) is not a Python 3.11 to 3.13 that runs; name another: make PYTHON=/path/to/python)
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& echo "installing python3-venv" && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; } || true
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || $(call FAIL,$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv)
	@echo "setting up $(VENV) with $$("$(PYTHON)" --version) (about a minute, 400 MB)"
	@"$(PYTHON)" -m venv --clear "$(VENV)" || $(call FAIL,could not make the virtual environment $(VENV) with $(PYTHON))
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]' \
		|| $(call FAIL,pip could not install the dependencies into $(VENV); its message stands above)
	@touch $@

constraints:
	@command -v uv >/dev/null || $(call FAIL,uv not found; install it with pipx or pip)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --no-emit-index-url \
		--annotation-style line --custom-compile-command "make constraints" --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
