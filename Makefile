# Two commands: `make demo` and `make test`. Each makes what it needs, once.

PYTHON ?= python3.11
PYTEST_ARGS ?=
PYTEST := -m pytest --durations=30 -n logical --maxprocesses 4 --dist loadfile
export PYTHONHASHSEED = 0
unexport PYTHONDONTWRITEBYTECODE  # each of many processes would compile the tests and packages anew

VENV := .venv/.made
VENV_TF1 := .venv-tf1/.made
ZOOKEEPER := .zookeeper/.made

# A working Python 3.7: on PATH, else in pyenv (its shim needs a version chosen, so the real
# binary is asked for), else in uv. Empty when there is none.
PYTHON3.7 = $(shell \
  works() { "$$1" -c 'import sys, venv; sys.exit(sys.version_info[:2] != (3, 7))' 2>/dev/null; }; \
  for found in "$$(command -v python3.7)" \
      $$(ls -d "$${PYENV_ROOT:-$$(pyenv root 2>/dev/null || echo $$HOME/.pyenv)}"/versions/3.7*/bin/python3.7 2>/dev/null) \
      "$$(uv python find 3.7 2>/dev/null)"; do \
    [ -n "$$found" ] && works "$$found" && { echo "$$found"; break; }; \
  done)

.PHONY: help demo test check format docs bench zookeeper clean

help:
	@echo 'make demo    train, convert, compare: writes out/demo/report.html'
	@echo 'make test    the checks and tests; LONG=1 adds the long tests, and REQUIRE=tf1,zookeeper'
	@echo '             makes a skip of either a failure'
	@echo 'make check   ruff and mypy alone; make format mends what ruff can'
	@echo 'make docs    the documentation as a site: out/site/index.html'
	@echo 'make bench   every benchmark, and its tables into the pages; BENCH_ARGS="--short" in minutes'
	@echo 'make clean   removes what make made'

demo: $(VENV)
	@.venv/bin/semisync demo $(DEMO_ARGS)

# Two streams side by side, TensorFlow 1.15's tests and all tests, each in a process per core; what is
# marked one_tensorflow is left to 1.15 where there is one, and what is marked long to LONG=1. Each
# stream is a process group that an interruption ends; the logs are printed one after the other.
test: SHELL := bash
test: $(VENV) tf1-environment zookeeper check
	@set -m; export REQUIRE=$(REQUIRE); \
	end() { trap '' INT TERM; kill -$$1 $${streams[@]/#/-}; wait; exit 130; }; \
	trap 'end INT' INT; trap 'end TERM' TERM; \
	marked='$(if $(LONG),,not long)'; others="$$marked"; \
	[ ! -e $(VENV_TF1) ] || others="$${marked:+$$marked and }not one_tensorflow"; \
	.venv/bin/python $(PYTEST) --no-loadscope-reorder -m "$$others" $(PYTEST_ARGS) \
	  < /dev/null & streams=($$!); \
	if [ -e $(VENV_TF1) ]; then \
	  .venv-tf1/bin/python $(PYTEST) -m "$$marked" tests/tf1 tests/jobs tests/cluster tests/simulate \
	    $(PYTEST_ARGS) < /dev/null > .venv-tf1/tests.log 2>&1 & streams+=($$!); \
	fi; \
	wait $${streams[0]}; result=$$?; \
	if [ $${#streams[@]} = 2 ]; then \
	  echo 'TensorFlow 1.15.5:'; \
	  wait $${streams[1]} || result=$$?; \
	  cat .venv-tf1/tests.log; \
	fi; \
	exit $$result

check: $(VENV)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: $(VENV)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# torch first and with its dependencies, the rest exactly as frozen: requirements/py311.txt says why.
$(VENV): requirements/torch.txt requirements/py311.txt setup.cfg pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo 'make: Python 3.11 is needed ($(PYTHON) is not on PATH); set PYTHON=/path/to/python3.11'; exit 3; }
	@echo 'making .venv: TensorFlow, torch and TorchRec take a few minutes, once'
	@$(PYTHON) -m venv --clear .venv
	@.venv/bin/pip install --quiet -r requirements/torch.txt
	@.venv/bin/pip install --quiet --no-deps -r requirements/py311.txt
	@.venv/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV_TF1): requirements/py37.txt setup.cfg pyproject.toml
	@echo 'making .venv-tf1: TensorFlow 1.15.5 on Python 3.7, once'
	@$(PYTHON3.7) -m venv --clear .venv-tf1
	@.venv-tf1/bin/pip install --quiet --upgrade pip==24.0
	@.venv-tf1/bin/pip install --quiet --no-deps -r requirements/py37.txt
	@.venv-tf1/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# .venv-tf1 where a Python 3.7 is found; without one the TensorFlow 1.15 tests are skipped, unless
# REQUIRE names tf1.
.PHONY: tf1-environment
tf1-environment:
	@if [ -e $(VENV_TF1) ] || [ -n '$(PYTHON3.7)' ]; then \
	  $(MAKE) --no-print-directory $(VENV_TF1); \
	else \
	  echo 'TensorFlow 1.15 is skipped: no Python 3.7 on PATH, in pyenv or in uv'; \
	  case ',$(REQUIRE),' in *,tf1,*) echo 'make: REQUIRE=tf1 asks for it'; exit 1;; esac; \
	fi

# ZooKeeper's jars from Debian's packages, unpacked in a folder of their own, where there is a Java.
# Without them the tests that need a real server are skipped, unless REQUIRE names zookeeper.
JARS := libzookeeper-java libnetty-java libslf4j-java libcommons-cli-java libcommons-io-java \
  libdropwizard-metrics-java libsnappy-java \
  libjackson2-core-java libjackson2-databind-java libjackson2-annotations-java

zookeeper:
	@if [ -e /usr/share/java/zookeeper.jar ] || [ -e $(ZOOKEEPER) ]; then exit 0; fi; \
	if ! command -v java >/dev/null; then why='there is no java'; \
	elif $(MAKE) --no-print-directory $(ZOOKEEPER); then exit 0; \
	else why='its packages could not be downloaded'; fi; \
	echo "ZooKeeper is skipped: $$why"; \
	case ',$(REQUIRE),' in *,zookeeper,*) echo 'make: REQUIRE=zookeeper asks for it'; exit 1;; esac

$(ZOOKEEPER):
	@echo 'unpacking ZooKeeper in .zookeeper, once'
	@rm -rf .zookeeper && mkdir -p .zookeeper/packages
	@cd .zookeeper/packages && get='apt-get -qq -o APT::Sandbox::User=root' && \
	  { $$get download $(JARS) || { $$get update && $$get download $(JARS); }; }
	@for package in .zookeeper/packages/*.deb; do dpkg -x "$$package" .zookeeper || exit 1; done
	@rm -r .zookeeper/packages
	@touch $@

# A warning fails it. Search needs a server: python -m http.server --directory out/site
docs: $(VENV)
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict
	@echo 'the site is in out/site/index.html'

# The peers that the benchmarks compare with, in a folder that they alone see.
PEERS := .peers/.made

bench: $(VENV) $(PEERS)
	@.venv/bin/python benchmarks/run.py $(BENCH_ARGS); result=$$?; \
	.venv/bin/python benchmarks/pages.py && exit $$result

$(PEERS): benchmarks/requirements.txt
	@rm -rf .peers
	@.venv/bin/pip install --quiet --no-deps --target .peers -r benchmarks/requirements.txt
	@touch $@

clean:
	rm -rf .venv .venv-tf1 .zookeeper .peers out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
