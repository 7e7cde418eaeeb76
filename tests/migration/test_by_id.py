"""`semisync migrate` and `verify` of jobs over TFRA's hash tables."""

import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main
from tests.model.by_id import jobs
from tests.model.by_id.jobs import by_id  # noqa: F401 (a fixture)
from tests.support.require import tfra_python
from tests.support.written import semisync_sources, written


@pytest.fixture
def rows(by_id, tmp_path):  # noqa: F811
    """A Parquet file of rows some of whose ids the tables lack."""
    found = by_id("adagrad").rows("after")
    columns = {name: found[name] for name in ("user", "clicked")}
    columns["items"] = list(found["items"])
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return str(path)


OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in ("drawn", "three_shards")]


@pytest.mark.long
@pytest.mark.parametrize("name", ["adam", *OTHERS])
def test_a_job_is_migrated(by_id, name, rows, tmp_path):  # noqa: F811
    out = tmp_path / "out"
    arguments = [by_id(name).prefix, "--data", rows, "--label", "clicked", "--out", str(out)]
    code = main(["migrate", *arguments, "--tf-python", tfra_python(), "--margin", "0.05"])
    report = json.loads((out / "report.json").read_text())
    states = {part["name"]: part["state"] for part in report["parts"]}
    assert code == 0, report["sentence"]
    assert set(states.values()) == {"passed"}
    assert states.keys() >= {"values", "forward", "training", "auc"}


@pytest.fixture
def converted(by_id, tmp_path):  # noqa: F811
    prefix, out = by_id("adagrad").prefix, str(tmp_path / "converted")
    assert main(["convert", prefix, out, "--model", "--output", "logits"]) == 0
    return prefix, out


def verify(converted, *arguments):
    return main(["verify", *converted, *arguments, "--tf-python", tfra_python(), "--json"])


@pytest.mark.long
def test_a_row_that_is_another_is_found(converted, rows, capsys):
    import torch
    from torch.distributed.checkpoint import FileSystemReader

    weight = "optim.state.deep_users.weight.sum"
    metadata = FileSystemReader(converted[1]).read_metadata()
    assert weight in metadata.state_dict_metadata
    place = next(v for k, v in metadata.storage_data.items() if k.fqn == weight)
    path = f"{converted[1]}/{place.relative_path}"
    with open(path, "r+b") as file:
        file.seek(place.offset)
        stored = file.read(place.length)
        first = np.float32(torch.load(__import__("io").BytesIO(stored))[0, 0]).tobytes()
        at = stored.index(first)
        file.seek(place.offset + at)
        file.write(np.float32(9.0).tobytes())
    code = verify(converted, "--steps", "2", "--data", rows, "--batch-size", "32")
    found = json.loads(capsys.readouterr().out)
    assert code == 1 and "deep_users" in json.dumps(found)


@pytest.fixture(scope="module")
def wrapped():
    """A function: the MetaGraph of the job of a name, with the optimizer that semisync wraps."""
    writer = pathlib.Path(jobs.__file__).with_name("write_wrapped.py")

    def path(name):
        given = [tfra_python(), writer, semisync_sources(), name]
        return str(written(*given, beside=["write_jobs.py"]) / f"{name}.meta")

    return path


OTHER_LOOK_UPS = [pytest.param(n, marks=pytest.mark.long) for n in ("adam", "one_shard", "plain")]


@pytest.mark.parametrize("name", ["twice", *OTHER_LOOK_UPS])
@pytest.mark.long
def test_a_wrapped_job_is_trained_on(by_id, wrapped, name, rows, tmp_path, capsys):  # noqa: F811
    """Whose gradients of an id are summed, in a look-up and over look-ups."""
    both, meta = [by_id(name).prefix, str(tmp_path / "out")], ["--meta", wrapped(name)]
    assert main(["convert", *both, *meta, "--model", "--output", "logits"]) == 0
    capsys.readouterr()
    code = verify(both, *meta, "--steps", "3", "--data", rows, "--batch-size", "32")
    said = capsys.readouterr()
    assert code == 0, said
    assert json.loads(said.out)["compared"]["parameter"] == 4


def test_score_tells_the_share_of_ids_that_the_tables_lack(converted, rows, tmp_path, capsys):
    out = str(tmp_path / "scores.parquet")
    arguments = ["--converted", converted[1], "--input", "user", "--input", "items"]
    assert main(["score", rows, *arguments, "--out", out]) == 0
    assert "deep_users lacks 30.00% of the ids" in capsys.readouterr().err
