"""`semisync train` goes on with a job over TFRA's hash tables, and with its new ids."""

import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

from migrate.torchrec.loading import read
from semisync.cli import main
from tests.model.by_id.jobs import by_id  # noqa: F401 (a fixture)


@pytest.fixture
def train(by_id, tmp_path):  # noqa: F811
    """A function of a folder and more options: the exit code."""
    job = by_id("adam")
    rows = job.rows("after")
    rows["items"] = list(rows["items"])
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    common = [job.prefix, "--data", str(tmp_path / "rows.parquet"), "--label", "clicked"]
    common += ["--batch-size", "32", "--output", "logits"]
    return lambda out, *more: main(["train", *common, "--out", str(tmp_path / out), *more])


def tensors(path):
    sizes = FileSystemReader(path).read_metadata().state_dict_metadata
    found = {k: torch.empty(v.size, dtype=v.properties.dtype) for k, v in sizes.items()}
    read(str(path), found)
    return found


def test_a_training_goes_on_with_new_ids(train, tmp_path):
    assert train("one") == train("one", "--resume", "--epochs", "2") == 0
    assert train("other", "--epochs", "2") == 0
    one, other = (tensors(tmp_path / n / "checkpoints/step-00000016") for n in ("one", "other"))
    assert len(one["model.deep_users.ids"]) == 10  # seven are the job's
    assert all(torch.equal(one[name], other[name]) for name in other)


def test_several_processes_are_refused(train, capfd):
    assert train("several", "--nproc", "2") == 3
    assert "cannot be shared out; train in one process" in capfd.readouterr().err
