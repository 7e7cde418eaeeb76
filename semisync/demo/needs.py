"""Checks the demo's requirements before it begins, rather than minutes later."""

import importlib.util
import subprocess
import sys

from semisync.common.errors import UsageError

_OWN = ("torch", "torchrec", "pyarrow", "matplotlib")  # one or two of each extra stand for all
_HAS_TENSORFLOW = (
    "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"
)


def look(tf_python: str) -> None:
    """Looks for the packages that the demo needs.

    Raises:
        ModuleNotFoundError: this interpreter lacks one.
        UsageError: `tf_python` is another one and cannot be run, or has no TensorFlow.
    """
    here = tf_python == sys.executable
    for name in (*_OWN, *(["tensorflow"] if here else [])):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
    if not here and not _has_tensorflow(tf_python):
        raise UsageError(f"{tf_python} has no TensorFlow; --tf-python names one that has it")


def _has_tensorflow(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", _HAS_TENSORFLOW], check=False).returncode == 0
    except OSError as error:
        raise UsageError(f"{python} cannot be run: {error.strerror}") from error
