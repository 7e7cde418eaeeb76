"""Skips that REQUIRE can forbid.

`make test REQUIRE=tf1` (a comma-separated list) turns the skip of a named part into a failure, so
that a machine that lacks the part cannot pass for one that has it.
"""

import os
import pathlib
import sys

import pytest

from tests.support import fork_server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"  # third-party data and checkpoints, beside the checkout
TF1_PYTHON = ROOT / ".venv-tf1" / "bin" / "python"
TFRA_PYTHON = ROOT / ".venv-tfra" / "bin" / "python"
LONG = bool(os.environ.get("LONG"))  # the tests marked long run too


def skip_without(part, reason):
    """Skips the test for lack of `part`, or fails it when REQUIRE names the part."""
    if part in os.environ.get("REQUIRE", "").split(","):
        pytest.fail("REQUIRE={} but {}".format(part, reason))
    pytest.skip(reason)


def tf1_python():
    """Path of the TensorFlow 1.15 interpreter that `make test` sets up, as a string."""
    if not TF1_PYTHON.exists():
        skip_without("tf1", "there is no {}".format(TF1_PYTHON.relative_to(ROOT)))
    return str(TF1_PYTHON)


def tfra_python():
    """Path of the interpreter with TFRA that `make test` sets up, as a string."""
    if not TFRA_PYTHON.exists():
        skip_without("tfra", "there is no {}".format(TFRA_PYTHON.relative_to(ROOT)))
    return str(TFRA_PYTHON)


def fastest_tensorflow():
    """Path of the interpreter that starts fastest: 1.15 takes 1 s of CPU to import, 2.x 5."""
    return str(TF1_PYTHON) if TF1_PYTHON.exists() else sys.executable


def forked_tensorflow(python=None):
    """Path of a stand-in of an interpreter, that of `fastest_tensorflow` if none is named, whose
    forks have imported TensorFlow."""
    return str(fork_server.forked(python or fastest_tensorflow()) / "python")


def shared(*parts):
    """Path below ../shared; skips where that folder does not exist."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        skip_without("shared", "there is no {}".format(path))
    return path


def environment(**more):
    """This process's environment for another interpreter.

    Importing TensorFlow 2.x sets TF2_BEHAVIOR, which would make TensorFlow 1.15 behave like 2.x.
    """
    return dict({k: v for k, v in os.environ.items() if k != "TF2_BEHAVIOR"}, **more)
