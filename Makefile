# `make` alone lists the targets. CI runs the same ones: see .ci/run.
.DEFAULT_GOAL := help
.PHONY: help setup demo dev test test-fast test-spark test-spark40 test-browser browser postgres soak mutants bench \
	lint types format rooms pin clean

PORT ?= 3000
DEMO ?= demo
COUNT ?= 20
BIN := .venv/bin

##@ Use it
help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:  ## make .venv with everything in it, and Java if it is missing
	@scripts/setup

demo: setup  ## a whole lake from sample data, in minutes
	@$(BIN)/datalake demo --folder $(DEMO)

dev: setup  ## the Dagster UI on http://127.0.0.1:3000 (PORT=4000: on another port)
	@$(BIN)/datalake dev --port $(PORT)

##@ Change it
# Modules share what takes long to start; two at once fit into 8 GB with all of their Javas.
TWO_MODULES := -n 2 --dist loadfile

test: test-fast  ## all tests but those in a browser and the soak
	$(BIN)/pytest $(TWO_MODULES) -m "(spark or e2e) and not browser and not soak"

test-fast: setup postgres  ## the tests without Spark and without whole programs, side by side
	$(BIN)/pytest -n auto -m "not spark and not e2e and not browser and not soak"

test-spark: setup  ## the tests that start Spark
	$(BIN)/pytest $(TWO_MODULES) -m "spark and not soak"

# Where readers of tables, kills and start-up are tried, the version matters little.
ON_CLUSTERS := $(addprefix tests/spark_resources/engines/test_,local.py local_on_s3.py emr.py cluster.py)

test-spark40: setup .spark40/.done  ## syncs on PySpark 4.0, which clusters run
	@PYTHONPATH=$(CURDIR)/.spark40 $(BIN)/python -c 'import pyspark, sys; \
		print("PySpark", pyspark.__version__); sys.exit("4.0." not in pyspark.__version__)'
	PYTHONPATH=$(CURDIR)/.spark40 $(BIN)/pytest $(TWO_MODULES) -m "spark and not soak" \
		$(ON_CLUSTERS)

test-browser: setup browser  ## the tests that look at the UI in Chromium
	$(BIN)/pytest -m browser

soak: setup postgres  ## large archives on Spark, every fault at every call (hours)
	$(BIN)/pytest -n auto -m "soak and not spark and not e2e" --durations=0
	$(BIN)/pytest -m "soak and (spark or e2e)" --durations=0

bench: setup .bench-venv/.done  ## compare the engine with DuckDB, dlt and PySpark (BENCH="--events 50000")
	$(BIN)/python -m benchmarks peers $(BENCH)

mutants: setup postgres  ## break the code at random places, see which no test notices (SEED=7 COUNT=20)
	$(BIN)/python -m tests.mutants --count $(COUNT) $(if $(SEED),--seed $(SEED))

postgres:  ## install the programs of Postgres for tests, if they are missing
	@scripts/postgres

browser:  ## install Chromium for them, if it is missing
	@scripts/browser

lint: setup  ## ruff, format, and the layers (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: setup  ## mypy, strict
	$(BIN)/mypy

format: setup  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rooms: setup  ## draw the rooms and their imports into docs/architecture.md
	$(BIN)/python scripts/draw_rooms.py

pin: setup  ## resolve the dependencies anew, into requirements.txt (minutes)
	CUSTOM_COMPILE_COMMAND="make pin" $(BIN)/pip-compile --quiet --upgrade --extra dev \
		--generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host --output-file requirements.txt pyproject.toml

clean:  ## remove what set-up, tests and tools made (not your lakes)
	rm -rf .venv .bench-venv .bench .spark40 .hypothesis .mypy_cache .pytest_cache .ruff_cache \
		*.egg-info build

# A second Spark costs no second environment: it only has to come first on the path.
.spark40/.done: requirements-spark40.txt
	@echo "installing PySpark 4.0 into .spark40"
	@rm -rf .spark40
	@$(BIN)/pip install --disable-pip-version-check --quiet --no-deps --require-hashes \
		--target .spark40 -r $<
	@touch $@

# The dependencies of dlt conflict with ours, so it has its own environment.
.bench-venv/.done: pyproject.toml
	@echo "installing the peers of the benchmarks into .bench-venv"
	@$(BIN)/python -m venv --clear .bench-venv
	@$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print(*project["optional-dependencies"]["bench"], sep="\n")' \
		| .bench-venv/bin/python -m pip install --disable-pip-version-check --quiet -r /dev/stdin
	@touch $@
