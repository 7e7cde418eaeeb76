"""The versions of what computes, for reports and files."""

import importlib.metadata
import platform
from typing import Dict

import numpy
import pyarrow


def versions() -> Dict[str, str]:
    """By name; of semisync a sentence where it is not installed."""
    try:
        own = importlib.metadata.version("semisync")
    except importlib.metadata.PackageNotFoundError:
        own = "run from its sources, not installed"
    return {
        "semisync": own,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
    }
