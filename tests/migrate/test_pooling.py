"""The graph tells how TensorFlow pooled; TorchRec then pools to the same vectors."""

import dataclasses

import numpy as np
import pytest
import torch
from torchrec import KeyedJaggedTensor

import migrate
from migrate.torchrec import build, combiner_weights, load, read_model
from semisync.common.errors import BadInput, UsageError
from tests.support.conversions import make_plan
from tests.support.require import shared

# As in write_checkpoints.poolings.
BAGS, WEIGHTS = [[3, 9, 9], [0], [7, 2]], [[0.5, 2.0, -1.0], [3.0], [1.5, 0.25]]
NAMES = {
    f"{combiner}_{'weighted' if weighted else 'plain'}_{parts}": (combiner, weighted)
    for combiner in ("sum", "mean", "sqrtn")
    for weighted in (False, True)
    for parts in (1, 3)
}


def bags(names):
    """The bags that TensorFlow looked up, for each of `names`."""
    ids = torch.tensor(sum(BAGS, []))
    lengths = torch.tensor([len(bag) for bag in BAGS])
    return KeyedJaggedTensor(
        names,
        ids.repeat(len(names)),
        torch.cat([_weights(name, lengths) for name in names]),
        lengths.repeat(len(names)),
    )


def _weights(name, lengths):
    combiner, weighted = NAMES.get(name, ("sum", False))
    given = torch.tensor(sum(WEIGHTS, [])) if weighted else None
    return combiner_weights(combiner, lengths, given)


def test_the_graph_tells_the_combiner_and_whether_ids_have_weights(checkpoints):
    plan = make_plan(checkpoints / "poolings")
    found = {table.name: (table.pooling, table.weighted) for table in plan.tables}
    others = {"middle": ("mean", False), "last": ("none", False), "one": ("none", False)}
    assert found == {**NAMES, **others, "two": (None, False)}
    assert migrate.Plan.from_yaml(plan.to_yaml()) == plan


def test_look_ups_that_do_not_agree_are_asked_for(checkpoints, tmp_path):
    plan = make_plan(checkpoints / "poolings")
    (note,) = [note for note in plan.notes if note.startswith("two is looked up")]
    assert "sum (" in note
    assert "mean (" in note
    assert note.endswith("set it in the plan or in the model config")
    plan.tables = [table for table in plan.tables if table.name == "two"]
    migrate.convert(plan, tmp_path / "out")
    with pytest.raises(UsageError, match="table 'two' has pooling None"):
        build(read_model(tmp_path / "out"))


def test_torchrec_pools_to_the_vectors_of_tensorflow(checkpoints, tmp_path):
    """Those that TorchRec lacks by the weights that stand for them."""
    plan = make_plan(checkpoints / "poolings")
    plan.tables = [table for table in plan.tables if table.name in NAMES]
    manifest = migrate.convert(plan, tmp_path / "out")
    noted = [note for note in manifest.notes if note.startswith("pooling of ")]
    named = [note[len("pooling of ") :].partition(": ")[0].split(", ") for note in noted]
    assert sorted(named) == [  # each rule that TorchRec lacks, and the tables pooled by it
        ["mean_weighted_1", "mean_weighted_3"],
        ["sqrtn_plain_1", "sqrtn_plain_3", "sqrtn_weighted_1", "sqrtn_weighted_3"],
    ]
    config = read_model(tmp_path / "out")
    for table in config["tables"]:
        if table["pooling"] == "sqrtn" or table["weighted"]:
            table["pooling"], table["weighted"] = "sum", True
    module = build(config)
    load(module, tmp_path / "out")
    assert sorted(module.collections) == ["ebc", "weighted_ebc"]
    expected = np.load(checkpoints / "poolings.npz")
    for name, vectors in module(bags(sorted(NAMES))).items():
        assert np.allclose(vectors.detach().numpy(), expected[name], atol=1e-6), name


def test_vectors_that_are_not_pooled_come_one_by_one(tf2_checkpoints, tmp_path):
    plan = make_plan(tf2_checkpoints / "poolings", static=[("^last$", "int8")])
    plan.tables = [table for table in plan.tables if table.pooling == "none"]
    migrate.convert(plan, tmp_path / "out")
    module = build(read_model(tmp_path / "out"))
    load(module, tmp_path / "out")
    assert sorted(module.collections) == ["ec_4", "int8_ec_4"]
    with migrate.open_checkpoint(tf2_checkpoints / "poolings") as checkpoint:
        tables = {name: checkpoint.read(name)[sum(BAGS, [])] for name in ("one", "last")}
    found = module(bags(["one", "last"]))
    assert np.array_equal(found["one"].values().detach().numpy(), tables["one"])
    assert np.allclose(found["last"].values().numpy(), tables["last"], atol=0.01)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pooling": "sqrtn"}, "TorchRec has no pooling sqrtn.*combiner_weights"),
        ({"pooling": "mean", "weighted": True}, r"sum\(w e\) / sum\(w\); FBGEMM divides"),
    ],
)
def test_a_pooling_that_torchrec_lacks_is_not_built(tf2_checkpoints, tmp_path, changes, sentence):
    plan = make_plan(tf2_checkpoints / "poolings", tables="^one$")
    plan.tables[0] = dataclasses.replace(plan.tables[0], **changes)
    migrate.convert(plan, tmp_path / "out")
    with pytest.raises(UsageError, match=sentence):
        build(read_model(tmp_path / "out"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pooling": "sum"}, "says pooling 'sum', but .* looks it up as mean"),
        ({"pooling": "none", "weighted": True}, "weights are for pooled vectors"),
        ({"pooling": "max"}, "pooling 'max', expected sum or mean or sqrtn or none"),
    ],
)
def test_a_plan_that_contradicts_the_graph_is_refused(tf2_checkpoints, tmp_path, changes, sentence):
    plan = make_plan(tf2_checkpoints / "poolings")
    plan.tables = [
        dataclasses.replace(table, **changes)
        for table in plan.tables
        if table.name == "mean_plain_3"
    ]
    with pytest.raises(BadInput, match=sentence):
        migrate.convert(plan, tmp_path / "out")


def test_an_unknown_combiner_has_no_weights():
    with pytest.raises(ValueError, match="expected one of"):
        combiner_weights("max", torch.tensor([1]))


def test_poolings_of_a_real_recommender():
    plan = make_plan(shared("models") / "movie_recommender_brickhoff" / "save")
    assert {table.name: table.pooling for table in plan.tables if "categories" in table.name} == {
        "movie_categories_layers_movie_categories_embed_matrix": "sum"
    }
    assert sorted({table.pooling for table in plan.tables}) == ["none", "sum"]
