"""Moving averages that MovingAverageOptimizer's swapping_saver stored under variables' names."""

import numpy as np

import migrate
from tests.support.conversions import load_all, make_plan, without_graph


def test_slots_of_swapped_averages_go_with_the_weights_that_are_trained(tf1_checkpoints, tmp_path):
    with migrate.open_checkpoint(tf1_checkpoints / "swapped") as checkpoint:
        weights = "^user/ExponentialMovingAverage$"
        plan = migrate.plan(checkpoint, tables=weights, rename=[(weights, "users")])
    (table,) = plan.tables
    assert (table.name, table.slots) == ("users", {"momentum1": "user/Adagrad"})
    assert {one.variable: one.slots for one in plan.dense} == {
        "user": {},
        "kernel": {},
        "kernel/ExponentialMovingAverage": {"sum": "kernel/Adagrad"},
    }
    assert any("user in user/ExponentialMovingAverage" in note for note in plan.notes)
    migrate.convert(plan, tmp_path / "out")
    found = load_all(tmp_path / "out", tmp_path / "all.pt")
    expected = np.load(tf1_checkpoints / "swapped.npz")
    weight = "ebc.embedding_bags.users.weight"
    assert np.array_equal(found[weight].numpy(), expected["weights"])
    assert np.array_equal(found["dense"]["user"].numpy(), expected["average"])
    accumulator = found["optim"]["state"][weight]["users.momentum1"].numpy()
    assert np.array_equal(accumulator, expected["accumulator"])
    assert not np.array_equal(expected["weights"], expected["average"])


def test_without_a_graph_it_is_said_that_averages_may_be_swapped(tf1_checkpoints, tmp_path):
    bare = without_graph(tf1_checkpoints, "swapped", tmp_path)
    by_hand = {"tables": "^user$", "partition_strategy": "mod"}
    notes = make_plan(bare, **by_hand).notes
    assert any("slots of kernel, user belong to the weights, and only a" in one for one in notes)
    for name in ("averaged", "adagrad_ref"):  # no slots, no averages
        notes = make_plan(tf1_checkpoints / name).notes
        assert not any("swapping_saver" in note for note in notes)
