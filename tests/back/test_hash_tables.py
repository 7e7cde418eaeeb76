"""Hash tables with raw ids: as they were, and as training left them."""

import numpy as np
import pytest
import torch
from torch.distributed import checkpoint as dcp

import migrate
from migrate.torchrec import load, managed_collision_collection
from semisync.common.errors import BadInput
from tests.back.same import assert_same
from tests.back.test_round_trip import convert
from tests.support.bundles import write
from tests.support.conversions import load_all

MODES = ["rows", "mch", "mpzch"]


def trained(original, folder, mode, **changes):
    """Converts the table `plain`, and saves what a training has of it: its rows doubled."""
    out = folder / "out"
    convert(original, out, ids=mode, drop="dense")
    state = load_all(out, folder / "all.pt")
    (weight,) = [key for key in state if key.endswith("embedding_bags.plain.weight")]
    state[weight] = state[weight] * 2
    state.pop("ids", None)  # which the module does not have
    state.update({key: change for key, change in changes.items() if key in state})
    dcp.save({"model": state}, checkpoint_id=str(folder / "dcp"), no_dist=True)
    return out, folder / "dcp"


def contents(prefix):
    """{id: row} of the table `plain`."""
    rows = migrate.open_hash_tables(prefix)["plain"].read()
    return {int(key): row.tolist() for key, row in zip(rows.keys, rows.values)}


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def test_trained_rows_come_back_under_their_ids(checkpoints, tmp_path, mode):
    original = checkpoints / "lookup_tables"
    out, saved = trained(original, tmp_path, mode)
    back = migrate.write_checkpoint(saved, tmp_path / "back", original, out)
    assert set(back.copied) == {"dense-keys", "dense-values", "words-keys", "words-values"}
    before = contents(original)
    assert contents(back.prefix) == {key: [2 * v for v in row] for key, row in before.items()}
    assert len(before) == 5


def test_a_table_without_rows_comes_back(tmp_path):
    tensors = {"t-keys": np.empty(0, np.int64), "t-values": np.empty((0, 2), np.float32)}
    original = write(tmp_path / "in", tensors)
    convert(original, tmp_path / "out")
    dcp.save({"t.embeddings.t.weight": torch.zeros(0, 2)}, checkpoint_id=str(tmp_path / "dcp"))
    back = migrate.write_checkpoint(tmp_path / "dcp", tmp_path / "back", original, tmp_path / "out")
    assert back.copied == []
    assert_same(original, back.prefix)


def test_tensorflow_restores_the_table(tf2_checkpoints, tmp_path):
    import tensorflow as tf
    from tensorflow.python.ops import lookup_ops

    original = tf2_checkpoints / "lookup_tables"
    out, saved = trained(original, tmp_path, "mch")
    back = migrate.write_checkpoint(saved, tmp_path / "back", original, out)
    expected = contents(back.prefix)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = lookup_ops.MutableHashTable(tf.int64, tf.float32, [-1.0] * 3, name="plain")
        tf.compat.v1.train.Saver().restore(session, back.prefix)
        assert session.run(table.size()) == 5
        found = session.run(table.lookup(tf.constant([*expected, 99], tf.int64)))
    assert found.tolist() == [*expected.values(), [-1.0] * 3]


def test_ids_that_came_and_went_while_it_trained_are_in_the_table(tf2_checkpoints, tmp_path):
    original = tf2_checkpoints / "lookup_tables"
    convert(original, tmp_path / "out", ids="mch", drop="dense")
    module = managed_collision_collection(str(tmp_path / "out"), {"plain": ["f"]})
    load(module, str(tmp_path / "out"))
    before = contents(original)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    (ids,) = [value for key, value in state.items() if key.endswith("_mch_sorted_raw_ids")]
    gone = int(ids[1])
    ids[1] = gone + 1  # the row now belongs to another id
    for name in ("_mch_remapped_ids_mapping", "embedding_bags.plain.weight"):
        (values,) = [value for key, value in state.items() if key.endswith(name)]
        values[[0, 2]] = values[[2, 0]].clone()  # two ids stand in each other's rows
    dcp.save(state, checkpoint_id=str(tmp_path / "dcp"), no_dist=True)
    back = migrate.write_checkpoint(tmp_path / "dcp", tmp_path / "back", original, tmp_path / "out")
    before[gone + 1] = before.pop(gone)
    assert contents(back.prefix) == before


def test_tables_with_more_than_rows_are_refused(tf2_checkpoints, tmp_path):
    original = tf2_checkpoints / "lookup_tables"
    convert(original, tmp_path / "out")
    weights = {
        f"ebc.embedding_bags.{name}.weight": torch.zeros(6, 3) for name in ("plain", "dense")
    }
    dcp.save(weights, checkpoint_id=str(tmp_path / "dcp"), no_dist=True)
    with pytest.raises(BadInput, match="'dense-keys': it belongs to a hash table .* that is more"):
        migrate.write_checkpoint(tmp_path / "dcp", tmp_path / "back", original, tmp_path / "out")


def test_a_table_without_its_ids_or_rows_is_refused(tf2_checkpoints, tmp_path):
    original = tf2_checkpoints / "lookup_tables"
    convert(original, tmp_path / "out", ids="mpzch", drop="dense")
    key = "m.embedding_bags.plain.weight"
    for tensors, problem in (
        ({"other": torch.zeros(1)}, "has no rows of the table 'plain'"),
        ({key: torch.zeros(6, 4)}, r"expected \[rows, 3\]"),
        ({key: torch.zeros(6, 3)}, "has no _hash_zch_identities of the table 'plain'"),
    ):
        dcp.save(tensors, checkpoint_id=str(tmp_path / "dcp"), no_dist=True)
        with pytest.raises(BadInput, match=problem):
            migrate.write_checkpoint(
                tmp_path / "dcp", tmp_path / "back", original, tmp_path / "out"
            )
