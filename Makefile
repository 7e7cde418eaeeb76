# Two commands: `make demo` and `make test`. Each makes what it needs, once.

PYTHON ?= python3.11
PYTEST_ARGS ?=
PYTEST := -m pytest --durations=30 -n logical --maxprocesses 4 --dist loadfile
export PYTHONHASHSEED = 0
unexport PYTHONDONTWRITEBYTECODE  # each of many processes would compile the tests and packages anew

VENV := .venv/.made
VENV_TF1 := .venv-tf1/.made
VENV_TFRA := .venv-tfra/.made
ZOOKEEPER := .zookeeper/.made
TRITON := .triton/.made

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
	@echo 'make test    the checks and tests; LONG=1 adds the long tests, and'
	@echo '             REQUIRE=tf1,tfra,zookeeper makes a skip of any of these a failure'
	@echo 'make check   ruff and mypy alone; make format mends what ruff can'
	@echo 'make docs    the documentation as a site: out/site/index.html'
	@echo 'make bench   every benchmark, and its tables into the pages; BENCH_ARGS="--short" in minutes'
	@echo 'make clean   removes what make made'

demo: $(VENV)
	@.venv/bin/semisync demo $(DEMO_ARGS)

# Streams side by side: the checks, all tests, and those of TensorFlow 1.15, then of TFRA, each under
# its own Python, with a process per core. What is marked one_tensorflow is left to 1.15 where there
# is one, what is marked again too without LONG=1, and what is marked long to LONG=1. Each stream is
# a process group that an interruption ends; the logs are printed one after the other.
test: SHELL := bash
test: $(VENV) $(TRITON) tf1-environment tfra-environment zookeeper
	@set -m; export REQUIRE=$(REQUIRE); \
	end() { trap '' INT TERM; kill -$$1 $${streams[@]/#/-}; wait; exit 130; }; \
	trap 'end INT' INT; trap 'end TERM' TERM; \
	marked='$(if $(LONG),,not long)'; others="$$marked"; \
	[ ! -e $(VENV_TF1) ] || others="$${marked:+$$marked and not again and }not one_tensorflow"; \
	.venv/bin/python $(PYTEST) --no-loadscope-reorder -m "$$others" $(PYTEST_ARGS) \
	  < /dev/null & streams=($$!); \
	others_in() { \
	  home=$$1; shift; [ ! -e $$home/.made ] || \
	    $$home/bin/python $(PYTEST) -m "$$marked" "$$@" $(PYTEST_ARGS) < /dev/null \
	      > $$home/tests.log 2>&1 || echo $$? > $$home/failed; \
	}; \
	rm -f .venv-tf1/failed .venv-tfra/failed; \
	{ others_in .venv-tf1 tests/wrap tests/rewrite tests/jobs tests/cluster tests/simulate; \
	  others_in .venv-tfra tests/tfra; } & streams+=($$!); \
	$(MAKE) --no-print-directory check > .venv/check.log 2>&1 < /dev/null & streams+=($$!); \
	wait $${streams[0]}; result=$$?; wait $${streams[1]}; wait $${streams[2]} || result=1; \
	cat .venv/check.log; \
	for home in .venv-tf1 .venv-tfra; do \
	  [ ! -e $$home/.made ] || { echo "$$home:"; cat $$home/tests.log; }; \
	  [ ! -e $$home/failed ] || result=1; \
	done; \
	exit $$result

check: $(VENV)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: $(VENV)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# An environment is built beside the old one and takes its place when it is whole: a failure leaves
# the old one as it was. Its scripts name the folder that it was built in, and get the new name.
NEW = $(@D).new
INTO_PLACE = touch $(NEW)/.made && \
  sed -i 's|$(NEW)|$(@D)|g' $$(grep -rlIF $(NEW) $(NEW)/bin $(NEW)/pyvenv.cfg) && \
  rm -rf $(@D).old && { [ ! -e $(@D) ] || mv $(@D) $(@D).old; } && mv $(NEW) $(@D) && rm -rf $(@D).old

# torch first and with its dependencies, the rest exactly as frozen: requirements/py311.txt says why.
$(VENV): requirements/torch.txt requirements/py311.txt setup.cfg pyproject.toml | own-.venv
	@command -v $(PYTHON) >/dev/null || { echo 'make: Python 3.11 is needed ($(PYTHON) is not on PATH); set PYTHON=/path/to/python3.11'; exit 3; }
	@echo 'making .venv: TensorFlow, torch and TorchRec take a few minutes, once'
	@$(PYTHON) -m venv --clear $(NEW)
	@$(NEW)/bin/pip install --quiet -r requirements/torch.txt
	@$(NEW)/bin/pip install --quiet --no-deps -r requirements/py311.txt
	@$(NEW)/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@$(INTO_PLACE)

$(VENV_TF1): requirements/py37.txt | own-.venv-tf1
$(VENV_TFRA): requirements/tfra.txt | own-.venv-tfra
$(VENV_TF1) $(VENV_TFRA): setup.cfg pyproject.toml
	@echo 'making $(@D) on Python 3.7, once'
	@$(PYTHON3.7) -m venv --clear $(NEW)
	@$(NEW)/bin/pip install --quiet --upgrade pip==24.0
	@$(NEW)/bin/pip install --quiet --no-deps -r $(filter requirements/%,$^)
	@$(NEW)/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@$(INTO_PLACE)

# A link, or an environment whose scripts name another folder, is another checkout's, or its user's.
OWN := own-.venv own-.venv-tf1 own-.venv-tfra
.PHONY: $(OWN)
$(OWN): own-%:
	@if [ -L $* ]; then why='is a link'; \
	elif [ ! -e $* ] || { [ -e $*/.made ] && grep -qF '$(CURDIR)/$*/bin/' $*/bin/pip; }; then exit 0; \
	else why='was not made here by make'; fi; \
	echo "make: $* $$why, and is left alone: move it away, and make builds one for this checkout"; exit 3

# In a folder of its own: in one process with TensorFlow, Triton crashes.
$(TRITON): requirements/triton.txt $(VENV)
	@rm -rf .triton
	@.venv/bin/pip install --quiet --no-deps --target .triton -r requirements/triton.txt
	@touch $@

# .venv-tf1 and .venv-tfra where a Python 3.7 is found; without one their tests are skipped, unless
# REQUIRE names tf1 or tfra.
.PHONY: tf1-environment tfra-environment
tf1-environment tfra-environment: %-environment:
	@if [ -e .venv-$*/.made ] || [ -n '$(PYTHON3.7)' ]; then \
	  $(MAKE) --no-print-directory .venv-$*/.made; \
	else \
	  echo '.venv-$* is skipped: no Python 3.7 on PATH, in pyenv or in uv'; \
	  case ',$(REQUIRE),' in *,$*,*) echo 'make: REQUIRE=$* asks for it'; exit 1;; esac; \
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

# A warning fails it.
docs: $(VENV)
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict
	@echo 'the site is in out/site/index.html'

# The peers that the benchmarks compare with, in a folder that they alone see.
PEERS := .peers/.made

bench: $(VENV) $(PEERS)
	@.venv/bin/python -m benchmarks.run $(BENCH_ARGS); result=$$?; \
	.venv/bin/python -m benchmarks.pages && exit $$result

$(PEERS): benchmarks/requirements.txt
	@rm -rf .peers
	@.venv/bin/pip install --quiet --no-deps --target .peers -r benchmarks/requirements.txt
	@touch $@

clean: $(OWN)
	rm -rf $(foreach venv,.venv .venv-tf1 .venv-tfra,$(venv) $(venv).new $(venv).old) .zookeeper .triton .peers out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
