"""The provenance of a report or a file of scores: the versions used, and the time."""

import datetime
import platform
from typing import Any, Dict

import numpy

from semisync.common.distribution import version


def stamp() -> Dict[str, Any]:
    """The `versions` of the packages that compute, by name, and when it is `written`, in UTC."""
    import pyarrow

    return {
        "versions": {
            "semisync": version(),
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "pyarrow": pyarrow.__version__,
        },
        "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
