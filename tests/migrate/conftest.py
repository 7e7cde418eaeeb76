"""Checkpoints that TensorFlow 1.15 and 2.x wrote, and TensorFlow's own reader."""

import pathlib
import sys

import pytest

from migrate.stream import regions
from tests.support.require import tf1_python
from tests.support.written import written

_HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="session")
def tf2_checkpoints():
    """Folder of the checkpoints that TensorFlow 2.x wrote, with the large one."""
    return written(sys.executable, _HERE / "write_checkpoints.py", "--large")


@pytest.fixture
def corrupt_checkpoint(tf2_checkpoints, tmp_path):
    """Prefix of a copy of adagrad_ref with one wrong bit in its second data file."""
    for file in tf2_checkpoints.glob("adagrad_ref.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    damaged = tmp_path / "adagrad_ref.data-00001-of-00003"
    data = bytearray(damaged.read_bytes())
    data[100] ^= 1
    damaged.write_bytes(bytes(data))
    return tmp_path / "adagrad_ref"


@pytest.fixture(scope="session")
def tf1_checkpoints():
    """Folder of the checkpoints that TensorFlow 1.15 wrote."""
    return written(tf1_python(), _HERE / "write_checkpoints.py", "--lazy-adam")


@pytest.fixture(scope="session", params=["tf1_checkpoints", "tf2_checkpoints"])
def checkpoints(request):
    """Each of the two folders in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def tf1_trained():
    """Folder of the checkpoints of write_trained.py, by TensorFlow 1.15, canned ones too."""
    return written(tf1_python(), _HERE / "write_trained.py")


@pytest.fixture(scope="session")
def tf2_trained():
    """Folder of the checkpoints of write_trained.py, by TensorFlow 2.x."""
    return written(sys.executable, _HERE / "write_trained.py")


@pytest.fixture(scope="session", params=["tf1_trained", "tf2_trained"])
def trained(request):
    """Each of the two folders in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def tf_reader():
    """TensorFlow's reader: prefix -> object with get_tensor and get_variable_to_shape_map."""
    import tensorflow

    return lambda prefix: tensorflow.train.load_checkpoint(str(prefix))


@pytest.fixture
def small_parts(monkeypatch):
    """A few rows a chunk, and a few chunks a part, so that a small checkpoint has many."""
    monkeypatch.setattr(regions, "CHUNK_BYTES", 96)
    monkeypatch.setattr(regions, "PART_BYTES", 200)
    monkeypatch.setattr(regions, "FILE_BYTES", 3000)
    monkeypatch.setattr(regions, "UPLOAD_BYTES", 3000)
