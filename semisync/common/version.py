"""The version of semisync that runs."""

import importlib


def version():
    """As it was installed; a sentence where it was not."""
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
