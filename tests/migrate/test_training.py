"""Which slots belong to which variable: by training ops, by object graphs, by names."""

import numpy as np
import pytest
import torch

import migrate
from migrate.inspection.listing import describe
from migrate.torchrec import build, build_optimizer, read_model
from migrate.verification import verify
from semisync.common.errors import BadInput
from tests.support.bundles import write
from tests.support.conversions import make_plan, rows_of, without_graph
from tests.support.require import shared

SLOTS = {
    "Adagrad": [("accumulator", "momentum1", "sum")],
    "Adam": [("m", "exp_avg", "exp_avg"), ("v", "exp_avg_sq", "exp_avg_sq")],
    "Ftrl": [("accum", "accum", "accum"), ("linear", "linear", "linear")],
}
SCOPED = [
    f"{optimizer}_{kind}_{parts}"
    for optimizer in ("adagrad", "adam")
    for kind in ("ref", "resource")
    for parts in (0, 3)
] + ["ftrl_ref_3"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SCOPED)
def test_slots_of_a_minimize_inside_of_a_scope_come_along(trained, tmp_path, name):
    plan = make_plan(trained / name)
    optimizer = name.split("_")[0].capitalize()
    (table,) = plan.tables
    assert (table.variable, table.optimizer) == ("net/user", optimizer)
    assert [one.variable for one in plan.dense] == ["net/bias", "net/kernel"]
    assert {one.optimizer for one in plan.dense} == {optimizer}
    assert table.hyperparameters["learning_rate"] == 0.1
    assert plan.notes == []
    migrate.convert(plan, tmp_path / "out")
    assert verify(str(trained / name), str(tmp_path / "out")).verified
    expected = np.load(trained / (name + ".npz"))
    weight = "ebc.embedding_bags.net_user.weight"
    assert np.array_equal(rows_of(tmp_path / "out", weight), expected["net/user"])
    for slot, fused, dense in SLOTS[optimizer]:
        state = f"net_user.{fused}" if fused == "momentum1" else fused
        found = rows_of(tmp_path / "out", f"optim.state.{weight}.{state}")
        assert np.array_equal(found, expected[f"net/user:{slot}"])
        for variable in ("net/kernel", "net/bias"):
            found = rows_of(tmp_path / "out", f"dense_optim.{variable}.{dense}")
            assert np.array_equal(found, expected[f"{variable}:{slot}"])


@pytest.mark.parametrize("parts", [1, 3])
def test_a_canned_linear_model_converts_with_its_slots(tf1_trained, tmp_path, parts):
    plan = make_plan(tf1_trained / f"canned_{parts}")
    (table,) = plan.tables
    assert (table.optimizer, table.partitions) == ("Ftrl", parts)
    assert table.hyperparameters["learning_rate"] == 0.2
    assert [one.optimizer for one in plan.dense] == ["Ftrl"]
    migrate.convert(plan, tmp_path / "out")
    expected = np.load(tf1_trained / f"canned_{parts}.npz")
    weight = "ebc.embedding_bags.linear_linear_model_x_weights.weight"
    for slot, fqn in [("", weight), ("/Ftrl", "accum"), ("/Ftrl_1", "linear")]:
        fqn = f"optim.state.{weight}.{fqn}" if slot else fqn
        wanted = expected["linear/linear_model/x/weights" + slot]
        assert np.array_equal(rows_of(tmp_path / "out", fqn), wanted)


def test_slots_stored_under_a_name_a_part_are_one_tensor(trained):
    """TensorFlow's own reader shows them as several tensors, most of each missing."""
    with migrate.open_checkpoint(trained / "adam_ref_3") as checkpoint:
        expected = np.load(trained / "adam_ref_3.npz")
        assert np.array_equal(checkpoint.read("net/user/Adam_1"), expected["net/user:v"])
        assert len(checkpoint["net/user/Adam"].slices) == 3
        assert set(checkpoint.parts.values()) == {"net/user/Adam", "net/user/Adam_1"}


def test_an_optimizers_learning_rate_is_that_of_its_own_training_ops(trained, tmp_path):
    plan = make_plan(trained / "two_rates")
    plan.tables[0].pooling = "sum"
    assert plan.tables[0].hyperparameters == {"learning_rate": 0.02}
    migrate.convert(plan, tmp_path / "out")
    config = read_model(tmp_path / "out")
    (optimizer,) = build_optimizer(config, build(config)).values()
    assert isinstance(optimizer, torch.optim.Adagrad)
    assert optimizer.param_groups[0]["lr"] == 0.02


def test_names_are_the_fallback_below_a_scope_too(trained, tmp_path):
    prefix = without_graph(trained, "adam_ref_0", tmp_path)
    plan = make_plan(prefix, tables="user$")
    assert plan.tables[0].slots["exp_avg_sq"] == "net/net/user/Adam_1"
    assert {one.optimizer for one in plan.dense} == {"Adam"}
    (note,) = plan.notes
    assert note.startswith(
        "net_1/beta1_power, net_1/beta2_power are taken for counters by their names"
    )


def test_a_slot_without_an_owner_is_noted(tmp_path):
    shapes = {"user": (5, 3), "tower/user/Adam": (4, 3)}
    shapes |= dict.fromkeys(["gone/kernel/Adam", "gone/kernel/Adam_1"], (2, 2))
    write(tmp_path / "x", {name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    plan = make_plan(tmp_path / "x", tables="^user$")
    assert (plan.tables[0].optimizer, len(plan.dense)) == (None, 3)
    (note,) = [note for note in plan.notes if "no optimizer gets them" in note]
    assert note.startswith("gone/kernel/Adam, gone/kernel/Adam_1, tower/user/Adam look like slots")
    with migrate.open_checkpoint(tmp_path / "x") as checkpoint:
        report = describe(checkpoint)
    assert {one["kind"] for one in report["tensors"]} == {"variable"}
    assert note in report["notes"]


def test_where_names_give_a_variable_to_two_owners_nothing_is_guessed(tmp_path):
    """`minimize` in the scope "deep" of a model with user and deep/user."""
    names = ["user", "deep/user", "deep/user/Adagrad", "deep/deep/user/Adagrad"]
    write(tmp_path / "x", dict.fromkeys(names, np.ones((5, 3), np.float32)))
    with pytest.raises(BadInput, match="'deep/user' has slots of two .*, give the MetaGraph"):
        make_plan(tmp_path / "x", tables="user$")


def test_what_a_training_op_that_is_not_known_reads_is_noted(trained):
    plan = make_plan(trained / "unknown_op")
    assert [(one.variable, one.optimizer) for one in plan.dense] == [
        ("user", None),
        ("user_velocity", None),
    ]
    assert "user_velocity are read by ResourceApplyKerasMomentum, which is not" in plan.notes[0]


def test_the_slots_of_two_optimizers_are_listed(trained):
    with migrate.open_checkpoint(trained / "two_optimizers") as checkpoint:
        report = describe(checkpoint)
    kinds = {one["name"]: one["kind"] for one in report["tensors"]}
    assert {kinds["user/Adagrad"], kinds["user/Adagrad_1"]} == {"slot", "variable"}
    assert any("'user' has slots of two optimizers" in note for note in report["notes"])
    assert report["verified"]


def test_of_the_slots_of_two_optimizers_one_must_be_dropped(trained, tmp_path):
    with pytest.raises(BadInput, match="'user' has slots of two optimizers, 'user/Adagrad_1' and"):
        make_plan(trained / "two_optimizers")
    plan = make_plan(trained / "two_optimizers", drop="Adagrad_1$")
    assert plan.tables[0].slots == {"momentum1": "user/Adagrad"}
    plan = make_plan(trained / "two_optimizers", drop="Adagrad$")
    assert plan.tables[0].slots == {"momentum1": "user/Adagrad_1"}
    migrate.convert(plan, tmp_path / "out")


def test_slots_that_the_checkpoint_lacks_are_noted(trained):
    (note,) = make_plan(trained / "weights_alone").notes
    assert "trains net/bias, net/kernel, net/user with Adam, but the checkpoint lacks" in note


def test_swapped_slots_of_one_shape_are_refused(trained, tmp_path):
    plan = make_plan(trained / "adam_resource_3")
    for one in [plan.tables[0], plan.dense[0]]:
        right = dict(one.slots)
        one.slots = dict(zip(right, reversed(right.values())))
        with pytest.raises(BadInput, match=f"'{one.variable}': the plan says slot exp_avg is"):
            migrate.convert(plan, tmp_path / "out")
        one.slots = right
    plan.dense[0].slots, plan.dense[1].slots = {}, {}
    plan.dense[1].slots = {"exp_avg": "net/net/kernel/Adam"}
    migrate.convert(plan, tmp_path / "out")  # a slot may be left out


def test_inspect_knows_slots_as_convert_does(trained):
    with migrate.open_checkpoint(trained / "adam_resource_0") as checkpoint:
        report = describe(checkpoint)
    kinds = {one["name"]: one["kind"] for one in report["tensors"]}
    assert kinds["net/net/user/Adam_1"] == "slot" and kinds["net/user"] == "variable"
    assert [one["name"] for one in report["variables"]] == ["net/bias", "net/kernel", "net/user"]
    assert {tuple(one["slots"]) for one in report["variables"]} == {("Adam", "Adam_1")}


def test_slots_of_an_object_based_checkpoint_have_their_owner(checkpoints, tmp_path):
    with migrate.open_checkpoint(checkpoints / "by_objects") as checkpoint:
        plan = migrate.plan(checkpoint, tables="^embedding/")
        slots = checkpoint.objects().slots
    (table,) = plan.tables
    assert table.optimizer == "Adam"
    names = {name: slots[source].name for name, source in table.slots.items()}
    assert names == {"exp_avg": "m", "exp_avg_sq": "v"}
    assert plan.dense == []
    manifest = migrate.convert(plan, tmp_path / "out")
    assert {"table slot"} < {one.role for one in manifest.tensors}
    assert_same_state(checkpoints / "by_objects", tmp_path / "out")


def test_a_conversion_has_state_of_as_many_variables_as_its_checkpoint(trained, tmp_path):
    prefix = trained / "adam_resource_0"
    migrate.convert(make_plan(prefix), tmp_path / "out")
    assert_same_state(prefix, tmp_path / "out")


def assert_same_state(prefix, converted):
    ours, theirs = (migrate.read_facts(str(path)) for path in (prefix, converted))
    assert theirs.slots == ours.slots
    assert {k: v.tolist() for k, v in theirs.cold.items()} == {
        k: v.tolist() for k, v in ours.cold.items()
    }


def test_keras_optimizers_are_known_or_noted(tmp_path):
    import tensorflow as tf

    keras = pytest.importorskip("tf_keras")
    table = tf.Variable(np.ones((5, 3), np.float32), name="user")
    for optimizer, known in [
        (keras.optimizers.legacy.Adam(), True),
        (keras.optimizers.legacy.Adagrad(), False),
        (keras.optimizers.Adam(), False),
    ]:
        optimizer.apply_gradients([(tf.ones((5, 3)), table)])
        path = tf.train.Checkpoint(embedding=table, optimizer=optimizer).write(str(tmp_path / "k"))
        plan = make_plan(path, tables="^embedding/")
        assert plan.tables[0].optimizer == ("Adam" if known else None)
        assert any("no optimizer gets them" in note for note in plan.notes) != known
        assert plan.tables[0].hyperparameters == ({"epsilon": 1e-7} if known else {})
        assert (
            any(
                "embedding/.ATTRIBUTES/VARIABLE_VALUE are those of Keras's Adam" in note
                for note in plan.notes
            )
            == known
        )


def test_third_party_slots_below_a_scope_have_their_owner():
    from migrate.graph.metagraph import read_graph
    from migrate.graph.updates import find_updates

    folder = shared("models", "jhollowayj_distributed")
    found = {
        one.variable: one for one in find_updates(read_graph(str(folder / "model.ckpt-0.meta")))
    }
    assert found["world_1/weight"].slots[0] == "optimizer/world_1/weight/RMSProp"
    assert found["world_1/weight"].hyperparameters["decay"] == 0.99
