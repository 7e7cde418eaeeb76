"""The job of `write_job`, trained by TensorFlow once a version of the script, and its rows."""

import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.support.written import written


@pytest.fixture(scope="session")
def job():
    """The folder with its checkpoint and rows."""
    return written(sys.executable, pathlib.Path(__file__).with_name("write_job.py"))


@pytest.fixture(scope="session")
def clicks(job, tmp_path_factory):
    """The job's rows as Parquet."""
    path = tmp_path_factory.mktemp("data") / "clicks.parquet"
    data = dict(np.load(job / "clicks.npz"))
    offsets = np.concatenate([[0], np.cumsum(data.pop("lengths"))]).astype(np.int32)
    columns = {name: data[name] for name in ("item", "clicked", "day", "key")}
    columns["tags"] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(data["tags"]))
    columns["user"] = [user.decode() for user in data["user"]]
    columns["price"] = data["price"][:, 0]
    pq.write_table(pa.table(columns), path, row_group_size=500)
    return path


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
