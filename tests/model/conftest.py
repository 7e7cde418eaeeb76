"""The zoo: models trained by TensorFlow 1.15 and 2.x, written once a version of their code."""

import hashlib
import pathlib
import sys

import pytest

from tests.model.zoo.read import models
from tests.support.require import LONG, ROOT, tf1_python
from tests.support.written import written

_ZOO = pathlib.Path(__file__).parent / "zoo"


def _write(python, *options):
    writer = _ZOO / "write_all.py"
    others = {path.name for path in _ZOO.glob("*.py")} - {writer.name, "read.py", "test_zoo.py"}
    elsewhere = [*sorted(_ZOO.glob("models/*.py")), ROOT / "tests" / "support" / "variables.py"]
    # With their digest as one of the inputs, a changed model is trained again.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in elsewhere)).hexdigest()
    given = {"elsewhere.sha256": digest.encode()}
    return written(python, writer, *options, beside=sorted(others), given=given)


@pytest.fixture(scope="session")
def zoo():
    """Folder with a folder for each model of `zoo.registry`, by TensorFlow 1.15: see `zoo.read`.

    Without LONG=1 for those of `registry.SOME` alone.
    """
    return _write(tf1_python(), *([] if LONG else ["--some"]))


@pytest.fixture(scope="session")
def zoo_tf2():
    """A folder for each of `registry.OF_2`, by TensorFlow 2.x."""
    return _write(sys.executable)


@pytest.fixture(scope="module", params=["zoo", "zoo_tf2"])
def zoo_of_each(request):
    """The `Written` models of either TensorFlow."""
    return models(request.getfixturevalue(request.param))
