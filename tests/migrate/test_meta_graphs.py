"""Where the MetaGraph of a checkpoint is, and when it is another model's."""

import shutil

import numpy as np
import pytest
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2

import migrate
from migrate.graph.changes import is_written
from migrate.graph.find import find_meta_graph
from migrate.graph.lookups import origin
from migrate.graph.metagraph import Graph, Node, read_graph
from migrate.targets.reading import open_target
from migrate.verification import verify
from semisync import cli
from semisync.common.errors import BadInput, UsageError
from tests.support.bundles import write
from tests.support.conversions import make_plan, rows_of, without_graph
from tests.support.require import shared


def test_the_graph_of_another_model_is_refused_with_the_first_differences(trained):
    for other, sentence in [
        (
            "other_model",
            r"'net/kernel' is float32 \[4, 4\] in the checkpoint, float32 \[4, 7\] in the .*; "
            "'net/bias' is in the checkpoint alone; 'net/user' is .*; "
            "'net/item' is in the MetaGraph alone; give",
        ),
        (
            "other_names",
            "'net/user' is in the checkpoint alone; 'net/item' is in the MetaGraph alone; give",
        ),
        ("dense", "'kernel' is in the MetaGraph alone; give"),
    ]:
        with pytest.raises(
            BadInput, match=f"{other}.meta is not the MetaGraph of .*: .*{sentence}"
        ):
            make_plan(trained / "two_rates", meta=trained / f"{other}.meta")


def test_a_foreign_graph_ends_with_3_on_every_way_in(trained, tmp_path, capsys):
    prefix, meta = str(trained / "two_rates"), str(trained / "other_names.meta")
    assert cli.main(["convert", prefix, str(tmp_path / "out"), "--meta", meta]) == 3
    assert cli.main(["inspect", prefix, "--meta", meta]) == 3
    assert capsys.readouterr().err.count("is not the MetaGraph of") == 2
    plan = make_plan(prefix)
    plan.meta = meta
    with pytest.raises(BadInput, match="is not the MetaGraph of"):
        migrate.convert(plan, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_has_more_or_less_is_the_models_own(trained):
    less = make_plan(trained / "adagrad_ref_0", meta=trained / "for_evaluation.meta")
    assert [one.variable for one in less.tables] == ["net/user"]
    assert less.tables[0].slots == {"momentum1": "net/net/user/Adagrad"}  # by its name
    assert less.notes == []
    more = make_plan(trained / "for_evaluation", meta=trained / "two_rates.meta")
    assert [one.variable for one in more.tables] == ["net/user"]
    assert "Adagrad, but the checkpoint lacks the slots" in more.notes[0]


def test_tables_that_the_graph_does_not_know_are_noted(trained, tmp_path):
    with migrate.open_checkpoint(trained / "two_rates") as checkpoint:
        tensors = {name: checkpoint.read(name) for name in checkpoint}
    tensors["net/new"] = np.zeros((7, 4), np.float32)
    plan = make_plan(write(tmp_path / "x", tensors), meta=trained / "two_rates.meta")
    assert [one.variable for one in plan.tables] == ["net/user"]
    assert "the MetaGraph does not know net/new, which become dense variables" in plan.notes[0]


@pytest.mark.parametrize("how", ["beside", "by hand"])
def test_a_saved_model_converts_by_its_own_graph(trained, tmp_path, how):
    folder = trained / "exported"
    if how == "by hand":
        shutil.copytree(folder / "variables", tmp_path / "moved")
        prefix, meta = tmp_path / "moved" / "variables", folder / "saved_model.pb"
    else:
        prefix, meta = folder, None
    plan = make_plan(prefix, meta=meta)
    (table,) = plan.tables
    assert (table.variable, table.partition_strategy) == ("net/user", "mod")
    assert plan.meta == str(folder / "saved_model.pb")
    migrate.convert(plan, tmp_path / "out")
    expected = np.load(trained / "exported.npz")
    found = rows_of(tmp_path / "out", "ebc.embedding_bags.net_user.weight")
    assert np.array_equal(found, expected["net/user"])
    assert verify(str(prefix), str(tmp_path / "out")).verified


def test_a_saved_model_of_tensorflow_2_is_joined_by_the_full_names(tmp_path):
    import tensorflow as tf

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.embedding = tf.Variable(np.ones((5, 3), np.float32), name="deep/user")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def __call__(self, ids):
            return tf.gather(self.embedding, ids)

    tf.saved_model.save(Module(), str(tmp_path / "saved"))
    plan = make_plan(tmp_path / "saved")
    key = "embedding/.ATTRIBUTES/VARIABLE_VALUE"
    assert f"functions of the graph use {key};" in plan.notes[0]
    plan = make_plan(tmp_path / "saved", tables="^embedding")
    assert [one.variable for one in plan.tables] == [key]


def test_a_damaged_saved_model_is_refused(trained, tmp_path):
    shutil.copytree(trained / "exported", tmp_path / "exported")
    path = tmp_path / "exported" / "saved_model.pb"
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"\x08\x01", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match="saved_model.pb"):
            make_plan(tmp_path / "exported")


def test_a_chain_of_any_length_leads_to_its_variable_and_a_circle_is_refused():
    sources = ["table", *(f"read{k}" for k in range(99))]
    chain = [Node(f"read{k}", "Identity", ((sources[k], 0),), {}) for k in range(100)]
    nodes = {node.name: node for node in [Node("table", "VariableV2", (), {}), *chain]}
    assert origin(Graph("model.meta", nodes), ("read99", 0)) == "table"
    nodes["read0"] = nodes["read0"]._replace(inputs=(("read9", 0),))
    with pytest.raises(
        BadInput, match="model.meta: 'read[0-9]' is computed from itself; the graph"
    ):
        origin(Graph("model.meta", nodes), ("read99", 0))


@pytest.mark.parametrize("made_by", ["RestoreV2", "Placeholder"])
def test_a_restored_value_is_no_change_though_it_is_cast_and_reshaped(made_by):
    nodes = [
        Node("table", "VariableV2", (), {}),
        Node("value", made_by, (), {}),
        Node("cast", "Cast", (("value", 0),), {}),
        Node("reshaped", "Reshape", (("cast", 0), ("shape", 0)), {}),  # Saver(reshape=True)
        Node("save/Assign", "Assign", (("table", 0), ("reshaped", 0)), {}),
    ]
    graph = Graph("model.meta", {node.name: node for node in nodes})
    assert is_written(graph, "table") == (made_by != "RestoreV2")


def test_a_model_without_tables_converts(trained, tmp_path, capsys):
    manifest = migrate.convert(make_plan(trained / "dense"), tmp_path / "out")
    assert (manifest.tables, len(manifest.tensors)) == ([], 6)
    prefix = without_graph(trained, "dense", tmp_path)
    with pytest.raises(UsageError, match="or --no-tables if there are none"):
        make_plan(prefix)
    assert cli.main(["convert", str(prefix), str(tmp_path / "again"), "--no-tables"]) == 0
    assert "0 tables, 1 dense variables" in capsys.readouterr().out
    expected = np.load(trained / "dense.npz")
    assert np.array_equal(rows_of(tmp_path / "again", "dense.kernel"), expected["kernel"])
    assert np.array_equal(
        rows_of(tmp_path / "again", "dense_optim.kernel.exp_avg"), expected["kernel:m"]
    )


def test_what_cannot_be_a_table_asks_for_no_graph(tmp_path):
    entry = shared("models", "monolith_hash_tables", "saved_model", "entry", "1622716114")
    manifest = migrate.convert(make_plan(entry), tmp_path / "out")
    assert [one.role for one in manifest.tensors] == ["scalar"]


def test_a_v1_checkpoint_has_its_graph_beside_it(tmp_path):
    folder = shared("models", "tf_session_bundle_v1_v2", "half_plus_two_v1", "00000123")
    plan = make_plan(folder / "export")
    assert plan.meta == str(folder / "export.meta")
    assert [one.variable for one in plan.dense] == ["a", "b"]
    migrate.convert(plan, tmp_path / "out")
    assert set(open_target(str(tmp_path / "out"), "dcp").tensors) == {"dense.a", "dense.b"}


@pytest.mark.long
def test_no_third_party_checkpoint_takes_the_graph_of_another_model():
    models = shared("models")
    metas = sorted(models.glob("**/*.meta"))

    def model(path):
        parts = path.relative_to(models).parts
        return parts[:1] if "half_plus_two" in str(path) else parts[:-1]

    pairs = 0
    for index in sorted(models.glob("**/*.index")):
        with migrate.open_checkpoint(index.with_suffix("")) as checkpoint:
            if list(checkpoint) == ["global_step"]:
                continue  # which fits any graph that counts steps
            for meta in metas:
                if model(meta) == model(index):
                    assert find_meta_graph(checkpoint, meta) is not None
                    continue
                pairs += 1
                with pytest.raises(BadInput, match="is not the MetaGraph of"):
                    find_meta_graph(checkpoint, meta)
    assert pairs > 100


@pytest.mark.parametrize("op", ["Placeholder", "TFRA>CuckooHashTableOfTensors", "_Retval", "f.1"])
def test_a_graph_of_one_node_is_a_graph_whatever_its_op(tmp_path, op):
    definition = graph_pb2.GraphDef()
    definition.node.add(name="one", op=op)
    (tmp_path / "graph.pb").write_bytes(definition.SerializeToString())
    assert list(read_graph(str(tmp_path / "graph.pb")).nodes) == ["one"]


def test_a_meta_graph_that_lists_ops_is_one(tmp_path):
    definition = meta_graph_pb2.MetaGraphDef()
    definition.meta_info_def.stripped_op_list.op.add(name="Placeholder")
    definition.graph_def.node.add(name="one", op="Placeholder")
    (tmp_path / "graph.meta").write_bytes(definition.SerializeToString())
    assert list(read_graph(str(tmp_path / "graph.meta")).nodes) == ["one"]
