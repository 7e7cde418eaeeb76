"""These tests need TFRA, which .venv-tfra has: `make test` runs them there."""

import importlib.util

if importlib.util.find_spec("tensorflow_recommenders_addons") is None:
    collect_ignore_glob = ["test_*.py"]
