"""The versions of what computes, for reports and files."""

import platform
from typing import Dict

import numpy
import pyarrow

from semisync.common.version import version


def versions() -> Dict[str, str]:
    """By name; of semisync a sentence where it is not installed."""
    return {
        "semisync": version(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
    }
