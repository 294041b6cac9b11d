# `make` alone lists the targets. CI runs the same ones: see .ci/run.
.DEFAULT_GOAL := help
.PHONY: help setup demo dev test test-fast test-spark test-spark40 test-spark41 test-spark4x test-browser browser postgres \
	azurite soak mutants bench \
	lint types format rooms pin clean

PORT ?= 3000
DEMO ?= demo
COUNT ?= 20
BIN := .venv/bin

##@ Use it
help:  ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:  ## create .venv with all dependencies, and install Java if it is missing
	@scripts/setup

demo: setup  ## build a lake from sample data, in minutes
	@$(BIN)/datalake demo --folder $(DEMO)

dev: setup  ## start the Dagster UI on http://127.0.0.1:3000 (PORT=4000: another port)
	@$(BIN)/datalake dev --port $(PORT)

##@ Change it
# Tests of a module share slow fixtures; two modules at once fit into 8 GB with their JVMs.
TWO_MODULES := -n 2 --dist loadfile

test: test-fast  ## run all tests except browser and soak tests
	$(BIN)/pytest $(TWO_MODULES) -m "(spark or e2e) and not browser and not soak"

test-fast: setup postgres azurite  ## run the tests without Spark and without whole programs, in parallel
	$(BIN)/pytest -n auto -m "not spark and not e2e and not browser and not soak"

test-spark: setup  ## run the tests that start Spark
	$(BIN)/pytest $(TWO_MODULES) -m "spark and not soak"

# The tests in which the version of Spark matters.
ON_CLUSTERS := $(addprefix tests/spark_resources/engines/test_,local.py local_on_s3.py emr.py cluster.py)

test-spark4x: test-spark40 test-spark41  ## run syncs on all versions of PySpark that EMR has

test-spark40: setup .spark40/.done  ## run syncs on PySpark 4.0, the oldest version of clusters
	$(call on_spark,40)

test-spark41: setup .spark41/.done  ## run syncs on PySpark 4.1, the version of emr-spark-8.1
	$(call on_spark,41)

define on_spark
	@PYTHONPATH=$(CURDIR)/.spark$(1) $(BIN)/python -c 'import pyspark, sys; \
		print("PySpark", pyspark.__version__); sys.exit(pyspark.__version__[:3:2] != "$(1)")'
	PYTHONPATH=$(CURDIR)/.spark$(1) $(BIN)/pytest $(TWO_MODULES) -m "spark and not soak" \
		$(ON_CLUSTERS)
endef

test-browser: setup browser  ## run the tests of the UI in Chromium
	$(BIN)/pytest -m browser

soak: setup postgres azurite  ## run the soak tests: large archives on Spark, a fault at every call (hours)
	$(BIN)/pytest -n auto -m "soak and not spark and not e2e" --durations=0
	$(BIN)/pytest -m "soak and (spark or e2e)" --durations=0

bench: setup .bench-venv/.done  ## compare the engine with DuckDB, dlt and PySpark (BENCH="--events 50000")
	$(BIN)/python -m benchmarks peers $(BENCH)

mutants: setup postgres azurite  ## break the code at random places, show which changes no test notices (SEED=7 COUNT=20)
	$(BIN)/python -m tests.mutants --count $(COUNT) $(if $(SEED),--seed $(SEED))

postgres:  ## install Postgres for tests, if it is missing
	@scripts/postgres

azurite:  ## install Azurite, an emulator of Azure's storage, for tests, if it is missing
	@scripts/azurite

browser:  ## install Chromium for tests, if it is missing
	@scripts/browser

lint: setup  ## run ruff, check the format, and check the layers (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: setup  ## run mypy (strict)
	$(BIN)/mypy

format: setup  ## fix lint and format with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rooms: setup  ## draw the rooms and their imports into docs/architecture.md
	$(BIN)/python scripts/draw_rooms.py

pin: setup  ## update the pinned dependencies in requirements.txt (minutes)
	CUSTOM_COMPILE_COMMAND="make pin" $(BIN)/pip-compile --quiet --upgrade --extra dev \
		--generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host --output-file requirements.txt pyproject.toml

clean:  ## remove everything that set-up, tests and tools created (not your lakes)
	rm -rf .venv .bench-venv .bench .spark40 .spark41 .azurite .hypothesis .mypy_cache .pytest_cache .ruff_cache \
		*.egg-info build

# A second Spark needs no second environment: it only has to be first on the path.
.spark40/.done .spark41/.done: .spark%/.done: requirements-spark%.txt
	@echo "installing PySpark into .spark$*"
	@rm -rf .spark$*
	@$(BIN)/pip install --disable-pip-version-check --quiet --no-deps --require-hashes \
		--target .spark$* -r $<
	@touch $@

# The dependencies of dlt conflict with ours, so it has its own environment.
.bench-venv/.done: pyproject.toml
	@echo "installing the peers of the benchmarks into .bench-venv"
	@$(BIN)/python -m venv --clear .bench-venv
	@$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		print(*project["optional-dependencies"]["bench"], sep="\n")' \
		| .bench-venv/bin/python -m pip install --disable-pip-version-check --quiet -r /dev/stdin
	@touch $@
