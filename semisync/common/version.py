"""The version of semisync in use."""

import importlib


def version():
    """As installed; a sentence where it is not installed."""
    for name in ("importlib.metadata", "importlib_metadata"):  # the latter with Python 3.7
        try:
            metadata = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return metadata.version("semisync")
        except metadata.PackageNotFoundError:
            return "run from its sources, not installed"
    return "of an unknown version"
