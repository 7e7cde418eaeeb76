"""`semisync train` goes on with a job over TFRA's hash tables, and with its new ids."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

import migrate
from migrate.targets.reading.torch_readers import read
from migrate.to_tensorflow import shards
from migrate.training.distributed.shares import check_mean
from migrate.training.task import Batch
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.model.by_id.jobs import by_id  # noqa: F401 (a fixture)
from tests.support.programs import output_of
from tests.support.require import tfra_python


@pytest.fixture
def arguments(by_id, tmp_path):  # noqa: F811
    """A function of a folder and more options: the arguments of the command."""
    job = by_id("adam")
    rows = job.rows("after")
    rows["items"] = list(rows["items"])
    pyarrow.parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    common = [job.prefix, "--data", str(tmp_path / "rows.parquet"), "--label", "clicked"]
    common += ["--batch-size", "32", "--output", "logits"]
    return lambda out, *more: ["train", *common, "--out", str(tmp_path / out), *more]


@pytest.fixture
def train(arguments):
    """The same, which trains: the exit code."""
    return lambda *given: main(arguments(*given))


@pytest.fixture
def in_two(arguments, interpreters):
    """The same in two processes."""

    def train(*given):
        command = [interpreters / "semisync", *arguments(*given), "--nproc", "2"]
        output_of(*command)

    return train


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


def test_what_a_graph_draws_for_new_ids_makes_no_sum_of_a_mean(by_id):  # noqa: F811
    job = by_id("drawn")
    module = migrate.build_training(job.prefix).module
    parts = {name: [v[:16], v[16:]] for name, v in job.batch(0).items()}
    halves = [Batch({name: part[half] for name, part in parts.items()}) for half in (0, 1)]
    check_mean(module, Batch(job.batch(0)), halves)
    assert {module.get_submodule(name).default for name in ("deep_users", "deep_items")} == {None}


def by_ids(path):
    """Tensors whose rows are in the order of the ids, the job's tables and slots among them."""
    found = {k: v for k, v in tensors(path).items() if k.startswith(("model.", "optim.", "count"))}
    for name in [name for name in found if name.endswith(".ids")]:
        table = name[len("model.") : -len(".ids")]
        order = found[name].argsort()
        for key in [key for key in found if key.startswith((name, *rows_of(table)))]:
            found[key] = found[key][order]
    return found


def rows_of(table):
    return f"model.{table}.weight", f"optim.{table}.weight."


@pytest.mark.long
def test_two_processes_take_the_steps_of_one(train, in_two, tmp_path):
    assert train("one") == 0
    in_two("two")
    one, two = (by_ids(tmp_path / n / "checkpoints/step-00000008") for n in ("one", "two"))
    assert len(two["model.deep_users.ids"]) == len(two["model.deep_users.weight"]) == 10
    assert one.keys() == two.keys() and "optim.deep_users.weight.exp_avg" in one
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_any_number_of_processes_goes_on_from_two_or_one(train, in_two, tmp_path):
    assert train("one") == 0
    in_two("two")
    assert train("two", "--resume", "--epochs", "2") == train("whole", "--epochs", "2") == 0
    in_two("one", "--resume", "--epochs", "2")
    whole = by_ids(tmp_path / "whole/checkpoints/step-00000016")
    for name in ("one", "two"):
        found = by_ids(tmp_path / name / "checkpoints/step-00000016")
        for key in whole:
            torch.testing.assert_close(found[key], whole[key], rtol=1e-5, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("how", ["train", pytest.param("in_two", marks=pytest.mark.long)])
def test_a_training_leads_back_to_a_checkpoint_that_tfra_restores(by_id, how, request, tmp_path):  # noqa: F811
    job, back = by_id("adam"), str(tmp_path / "back.ckpt")
    assert not request.getfixturevalue(how)("one")
    saved = tmp_path / "one" / "checkpoints" / "step-00000008"
    arguments = [str(saved), back, "--original", job.prefix]
    assert main(["convert", "--to-tensorflow", *arguments]) == 0
    kept = tensors(saved)
    for name in ("weight", "exp_avg"):
        slot = {"weight": "", "exp_avg": "_Adam_m"}[name]
        key = f"model.deep_users.{name}" if not slot else f"optim.deep_users.weight.{name}"
        rows = dict(zip(kept["model.deep_users.ids"].tolist(), kept[key]))
        found = restored(back, f"deep_users{slot}")
        assert sorted(found) == sorted(rows)
        assert all(np.array_equal(found[id], rows[id]) for id in rows)


def restored(prefix, table):
    """{id: row} of what TFRA's own Saver restores."""
    code = """
import json, sys
import tensorflow.compat.v1 as tf
import tensorflow_recommenders_addons
tf.disable_v2_behavior()
with tf.Session() as session:
    saver = tf.train.import_meta_graph(sys.argv[1] + ".meta")
    saver.restore(session, sys.argv[1])
    found = {}
    for op in tf.get_default_graph().get_operations():
        of_table = op.type.endswith("TableExport") and op.inputs[0].op.name
        if of_table and "/" + sys.argv[2] + "_mht_" in of_table:
            ids, rows = session.run(op.outputs)
            found.update(zip(ids.tolist(), rows.tolist()))
print(json.dumps(sorted(found.items())))
"""
    command = [tfra_python(), "-W", "ignore", "-c", code, prefix, table]
    found = json.loads(output_of(*command, TF_CPP_MIN_LOG_LEVEL="2").splitlines()[-1])
    return {id: np.array(row, np.float32) for id, row in found}


def test_write_checkpoint_of_a_training_in_memory(by_id, tmp_path):  # noqa: F811
    job = by_id("three_shards")
    training = migrate.build_training(job.prefix)
    training.module(job.batch(0)).backward()
    training.optimizer.step()
    back = str(tmp_path / "back.ckpt")
    migrate.write_checkpoint(training, back, original=job.prefix)
    again = migrate.build_training(back)
    ids, other = (one.module.deep_users.ids for one in (training, again))
    assert len(ids) > 7 and sorted(ids.tolist()) == other.tolist()
    order = ids.argsort()
    assert torch.equal(training.module.deep_users.weight[order], again.module.deep_users.weight)


def test_rows_that_lie_in_files_do_not_lead_back(by_id, tmp_path):  # noqa: F811
    job = by_id("in_files")
    with pytest.raises(BadInput, match="TFRADynamicEmbedding/.*are not written back"):
        migrate.write_checkpoint(
            migrate.build_training(job.prefix), str(tmp_path / "b"), original=job.prefix
        )


def test_ids_that_a_partitioner_of_its_own_dealt_are_refused(by_id, tmp_path, monkeypatch):  # noqa: F811
    job = by_id("three_shards")
    monkeypatch.setattr(shards, "_RULES", dict.fromkeys([False, True], lambda ids, count: ids * 0))
    with pytest.raises(BadInput, match="a partitioner of the job's own"):
        migrate.write_checkpoint(
            migrate.build_training(job.prefix), str(tmp_path / "b"), original=job.prefix
        )
