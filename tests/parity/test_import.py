"""The package's surface, and what importing it costs."""

import subprocess
import sys

import parity

HEAVY = {"tensorflow", "torch", "pyarrow", "matplotlib", "scipy", "sklearn", "pandas"}


def test_importing_parity_needs_numpy_alone():
    code = f"import sys, parity; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_public_names_are_sorted_and_there():
    assert parity.__all__ == sorted(parity.__all__)
    assert all(hasattr(parity, name) for name in parity.__all__)
    assert {"auc", "compare", "write_report"} <= set(parity.__all__)
