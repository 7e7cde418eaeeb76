"""Models over hash tables by raw id: torch's scores are TFRA's."""

import pathlib
import shutil

import numpy as np
import pytest
import torch

import migrate
from migrate.runtime.tables.by_id import TableById
from semisync.cli import main
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.support.require import tf1_python, tfra_python
from tests.support.written import written

FORMS = ["adagrad", "one_shard", "three_shards", "sparse", "safe", "plain", "drawn", "in_files"]


@pytest.mark.parametrize("name", FORMS)
def test_scores_are_tensorflows(by_id, name):
    job = by_id(name)
    model = migrate.load_model(job.prefix, output="logits")
    given = {name: torch.tensor(values) for name, values in job.rows("before").items()}
    torch.testing.assert_close(
        model(given).detach().numpy(), job.recorded["logits"], rtol=1e-5, atol=2e-6
    )


def test_a_table_is_one_line_of_the_source(by_id):
    source = migrate.load_model(by_id("three_shards").prefix).source
    assert "self.deep_users = runtime.TableById(rows=7, dim=4)\n" in source
    assert "DynamicPartition" not in source and source.count("TableById") == 2


def test_unknown_ids_get_what_the_graph_says_and_are_counted(by_id):
    folder = by_id()
    model = migrate.load_model(str(folder / "served"))
    served = np.load(str(folder / "served.npz"))
    table = next(one for one in model.modules() if isinstance(one, TableById))
    np.testing.assert_allclose(
        model({"user": torch.tensor(served["user"])}).detach(), served["sums"], rtol=1e-6
    )
    assert table.unknown == 1


def test_what_is_drawn_for_unknown_ids_can_be_set(by_id):
    job = by_id("one_shard")
    model = migrate.load_model(job.prefix, output="logits")
    given = {"user": torch.tensor([-99]), "items": torch.tensor([[5, 5, 5]])}
    assert model(given) != model(given)
    for table in model.modules():
        if isinstance(table, TableById):
            table.default = torch.zeros(table.weight.shape[1])
    assert model(given) == model(given)


@pytest.mark.long
def test_tables_that_are_in_files_beside_the_checkpoint_are_not_forgotten(by_id, tmp_path):
    for file in by_id("in_files").folder.glob("model.ckpt*"):
        shutil.copy(file, tmp_path)
    for read in (migrate.open_hash_tables, migrate.load_model):
        with pytest.raises(BadInput, match="the table 'deep_items' into files of its own"):
            read(str(tmp_path / "model.ckpt"))
    command = [
        "score",
        "rows.csv",
        "--checkpoint",
        str(tmp_path / "model.ckpt"),
        "--output",
        "logits",
    ]
    command += [
        "--input",
        "user",
        "--out",
        str(tmp_path / "scores.csv"),
        "--tf-python",
        tfra_python(),
    ]
    assert main(command) == 3


def test_a_table_that_the_checkpoint_lacks_is_named(by_id, tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape in (("out/kernel", [10, 1]), ("out/bias", [1])):
            tf.get_variable(name, shape)
        tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    with pytest.raises(BadInput, match="has no variable 'deep/.*belongs to the graph"):
        migrate.load_model(prefix, by_id("adagrad").prefix + ".meta")


def test_an_id_that_stands_twice_is_refused(by_id, tmp_path, monkeypatch):
    from migrate.hash_tables.hash_table import HashTable, Rows

    keys = np.array([4, 4])
    monkeypatch.setattr(HashTable, "read", lambda self: Rows(keys, np.zeros((2, 4), np.float32)))
    with pytest.raises(BadInput, match="has the id 4 twice"):
        migrate.load_model(by_id("adagrad").prefix)


@pytest.fixture(scope="module")
def mutable():
    """The folder of `write_mutable`."""
    return written(tf1_python(), pathlib.Path(__file__).with_name("write_mutable.py"))


def test_vectors_of_a_mutable_hash_table_score(mutable):
    model = migrate.load_model(str(mutable / "model.ckpt"), output="logits")
    recorded = np.load(mutable / "recorded.npz")
    found = model({"user": torch.tensor(recorded["user"])}).detach().numpy()
    np.testing.assert_allclose(found, recorded["logits"], rtol=1e-6)
    assert "self.users = runtime.TableById(rows=4, dim=2)\n" in model.source


def test_a_table_that_the_job_trains_by_hand_is_not_trained_on(mutable):
    with pytest.raises(BadInput, match="reads 'users', which each step changes by .*Insert"):
        migrate.build_training(str(mutable / "model.ckpt"))
