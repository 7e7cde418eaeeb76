"""Trained in TensorFlow, converted, trained on in torch: as if TensorFlow had trained on."""

import re

import numpy as np
import pytest
import torch

import migrate
from migrate.model.training.rules import CONTINUED
from migrate.planning import semantics, steps
from migrate.torchrec import (
    build,
    build_optimizer,
    dense_variables,
    embedding_bag_collection,
    load,
    load_optimizer,
    optimizers,
    read_model,
)
from semisync.common.errors import UsageError
from tests.support.bundles import write
from tests.support.three_tables import TABLES, batches, convert

OPTIMIZERS = {
    "adam_ref": (optimizers.Adam, {"lr": 0.1}),
    "momentum": (optimizers.Momentum, {"lr": 0.01, "momentum": 0.9}),
    "nesterov": (optimizers.Momentum, {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    "rmsprop": (optimizers.RMSProp, {"lr": 0.01, "decay": 0.8, "momentum": 0.5}),
    "centered": (
        optimizers.RMSProp,
        {"lr": 0.01, "decay": 0.8, "momentum": 0.5, "eps": 1e-3, "centered": True},
    ),
    "ftrl": (optimizers.Ftrl, {"lr": 0.1, "l1": 0.01, "l2": 0.1, "l2_shrinkage": 0.05}),
    "adagrad_ref": (torch.optim.Adagrad, {"lr": 0.1, "eps": 0.0}),
    "lazy_adam": (optimizers.Adam, {"lr": 0.1, "rows": "touched"}),
}
SLOTS = {
    "adagrad_ref": {"sum": "accumulator"},
    "momentum": {"momentum_buffer": "momentum"},
    "nesterov": {"momentum_buffer": "momentum"},
    "rmsprop": {"square_avg": "rms", "momentum_buffer": "momentum"},
    "centered": {"square_avg": "rms", "grad_avg": "mg", "momentum_buffer": "momentum"},
    "ftrl": {"accum": "accum", "linear": "linear"},
}
CASES = [
    (folder, name)
    for folder in ("tf1_checkpoints", "tf2_checkpoints")
    for name in OPTIMIZERS
    if (folder, name) != ("tf2_checkpoints", "lazy_adam")
]


def continued(prefix, out, name, sparse):
    """Weights after three more steps, and the optimizer."""
    directory = convert(prefix, out)
    ebc = embedding_bag_collection(directory, {table: [table] for table in TABLES})
    load(ebc, directory)
    tables = {key.split(".")[1]: one for key, one in ebc.named_parameters()}
    kind, hyperparameters = OPTIMIZERS[name]
    optimizer = kind(ebc.parameters(), **hyperparameters)
    load_optimizer(optimizer, dict(ebc.named_parameters()), directory)
    ids = batches()
    for step in range(3):
        optimizer.zero_grad()
        loss = 0.0
        for table, weight in tables.items():
            bags = torch.from_numpy(ids[table][step])
            pooled = torch.nn.functional.embedding_bag(bags, weight, mode="sum", sparse=sparse)
            loss = loss + 0.5 * (pooled**2).sum()
        loss.backward()
        optimizer.step()
    return tables, optimizer


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("folder", "name"), CASES)
@pytest.mark.few(1)
def test_three_more_steps_are_those_of_tensorflow(request, tmp_path, folder, name, sparse):
    prefix = request.getfixturevalue(folder) / name
    expected = np.load(str(prefix) + ".npz")
    tables, optimizer = continued(prefix, tmp_path / "out", name, sparse)
    for table, variable in TABLES.items():
        later = expected["later " + variable]
        assert np.abs(later - expected[variable]).max() > 1e-3  # the steps did something
        assert np.abs(tables[table].detach().numpy() - later).max() <= 2e-6
        for state, slot in SLOTS.get(name, {}).items():
            found = optimizer.state[tables[table]][state].numpy()
            assert np.allclose(found, expected[f"later {variable}:{slot}"], rtol=2e-5, atol=1e-6)


def test_a_graph_trains_on_with_every_optimizer_that_there_is():
    """Their names stand once more where torch is not to be imported."""
    assert {*optimizers.__all__} - {"RowOptimizer"} == CONTINUED


def test_the_plan_tells_lazy_adam_from_adam_and_knows_their_hyperparameters(tf1_checkpoints):
    for name, optimizer in [("lazy_adam", "LazyAdam"), ("adam_ref", "Adam")]:
        with migrate.open_checkpoint(tf1_checkpoints / name) as checkpoint:
            table = migrate.plan(checkpoint).tables[0]
        assert table.optimizer == optimizer
        assert table.hyperparameters == pytest.approx(
            {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
        )


@pytest.mark.parametrize("name", ["rmsprop", "centered", "ftrl", "nesterov", "adagrad_resource"])
def test_hyperparameters_come_from_the_training_ops(checkpoints, name):
    with migrate.open_checkpoint(checkpoints / name) as checkpoint:
        found = migrate.plan(checkpoint).tables[0].hyperparameters
    expected = {
        "rmsprop": {"learning_rate": 0.01, "decay": 0.8, "momentum": 0.5, "epsilon": 1e-10},
        "centered": {"learning_rate": 0.01, "decay": 0.8, "momentum": 0.5, "epsilon": 1e-3},
        "ftrl": {
            "learning_rate": 0.1,
            "l1": 0.01,
            "l2": 0.1,
            "l2_shrinkage": 0.05,
            "learning_rate_power": -0.5,
        },
        "nesterov": {"learning_rate": 0.01, "momentum": 0.9, "nesterov": 1.0},
        "adagrad_resource": {"learning_rate": 0.1},
    }[name]
    assert found == pytest.approx(expected)


def test_dense_variables_continue_by_their_names(tf2_checkpoints, tmp_path):
    directory = convert(tf2_checkpoints / "ftrl", tmp_path / "out")
    expected = np.load(tf2_checkpoints / "ftrl.npz")
    first = torch.nn.Parameter(torch.zeros(31))
    optimizer = optimizers.Ftrl([first], lr=0.1)
    assert load_optimizer(optimizer, {"first": first}, directory) == [
        "dense_optim.first.accum",
        "dense_optim.first.linear",
    ]
    assert np.array_equal(optimizer.state[first]["linear"].numpy(), expected["first:linear"])
    with pytest.raises(UsageError, match="has no optimizer state of any of"):
        load_optimizer(optimizer, {"absent": first}, directory)
    with pytest.raises(UsageError, match=r"is \[31\] in the checkpoint, but 'first' is \[30\]"):
        load_optimizer(optimizer, {"first": torch.nn.Parameter(torch.zeros(30))}, directory)


def linear(rows, columns):
    return torch.nn.Linear(rows, columns, bias=False).weight


@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_the_slots_of_a_kernel_are_transposed_on_request(trained, tmp_path, target):
    """TensorFlow's kernel is [in, out], nn.Linear's weight [out, in]."""
    directory = convert(trained / "adam_ref_0", tmp_path / "out", target=target)
    expected = np.load(trained / "adam_ref_0.npz")
    weight = linear(4, 4)
    optimizer = optimizers.Adam([weight])
    with pytest.raises(
        UsageError, match=r"\[4, 4\] too, so that .* transpose=\['net/kernel'\] if it"
    ):
        load_optimizer(optimizer, {"net/kernel": weight}, directory)
    assert not optimizer.state
    for names, turn in [(["net/kernel"], True), ([], False)]:
        load_optimizer(optimizer, {"net/kernel": weight}, directory, transpose=names)
        for state, slot in [("exp_avg", "m"), ("exp_avg_sq", "v")]:
            wanted = expected[f"net/kernel:{slot}"]
            found = optimizer.state[weight][state].numpy()
            assert np.array_equal(found, wanted.T if turn else wanted)
    kernel = dense_variables(directory, transpose=["net/kernel"])["net/kernel"]
    assert np.array_equal(kernel.numpy(), expected["net/kernel"].T) and kernel.is_contiguous()


def test_a_kernel_whose_parameter_is_the_other_way_round_is_named(tf2_checkpoints, tmp_path):
    directory = convert(tf2_checkpoints / "adagrad_ref", tmp_path / "out")  # dense/kernel [8, 2]
    weight = linear(8, 2)
    optimizer = torch.optim.Adagrad([weight])
    parameters = {"dense/kernel": weight}
    with pytest.raises(
        UsageError, match=r"\[in, out\], nn.Linear's .*transpose=\['dense/kernel'\]"
    ):
        load_optimizer(optimizer, parameters, directory)
    load_optimizer(optimizer, parameters, directory, transpose=["dense/kernel"])
    assert optimizer.state[weight]["sum"].shape == (2, 8)
    for names, sentence in [
        (["first"], r"transpose names 'first', which is \[31\]; .*one of \['dense/kernel'\]"),
        (["absent"], "which is not there"),
        ("dense/kernel", "expected a list of names"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            load_optimizer(optimizer, parameters, directory, transpose=names)
        with pytest.raises(UsageError, match=sentence):
            dense_variables(directory, names)


@pytest.mark.parametrize("name", ["adam_ref_0", "adam_resource_3"])
def test_a_dense_variable_goes_on_at_adams_step(trained, tmp_path, name):
    directory = convert(trained / name, tmp_path / "out")
    bias = torch.nn.Parameter(torch.zeros(4))
    optimizer = optimizers.Adam([bias], lr=0.1)
    load_optimizer(optimizer, {"net/bias": bias}, directory)
    assert optimizer.state[bias]["step"] == 3  # write_trained.py took three


def test_where_a_dense_variables_step_is_not_known_one_note_says_so(trained, tmp_path):
    with migrate.open_checkpoint(trained / "adam_ref_0") as checkpoint:
        plan = migrate.plan(checkpoint, drop="beta2_power")
        notes = semantics.notes(plan, checkpoint)
    assert sum("step of net/bias, net/kernel is not known" in note for note in notes) == 1


def test_the_step_of_adam_is_that_of_its_bias_correction(tf2_checkpoints, tmp_path):
    manifest = migrate.read_manifest(convert(tf2_checkpoints / "adam_ref", tmp_path / "out"))
    step = next(one for one in manifest.tensors if one.role == "step")
    assert (step.value, step.source) == (3.0, "beta2_power")


def test_tables_with_one_step_have_one_note(tmp_path):
    tables = ("city", "item", "user")
    tensors = {
        name + slot: np.zeros((3, 4), np.float32)
        for name in tables
        for slot in ("", "/Adam", "/Adam_1")
    }
    tensors.update(global_step=np.int64(7), beta1_power=np.float32(0.9**7))
    tensors.update(beta2_power=np.float32(0.999**7))
    with migrate.open_checkpoint(write(tmp_path / "adam", tensors)) as checkpoint:
        plan = migrate.plan(checkpoint, tables="^(city|item|user)$")
        for table in plan.tables:
            table.hyperparameters = {"beta2": 0.999}
        said = [one for one in semantics.notes(plan, checkpoint) if "step of" in one]
    assert said == ["Adam: step of city, item, user is 6, from beta2_power"]


def test_a_variable_without_its_step_is_named_with_its_own_optimizer(tmp_path):
    values = np.zeros((3, 4), np.float32)
    tensors = {"t": values, "a": values, "a/Adam": values, "a/Adam_1": values}
    tensors.update({"b": values, "b/AdamAsync": values, "b/AdamAsync_1": values})
    tensors.update({"b/AdamAsync_2": np.float32(0.9), "b/AdamAsync_3": np.float32(0.999)})
    with migrate.open_checkpoint(write(tmp_path / "in", tensors)) as checkpoint:
        said = semantics.notes(migrate.plan(checkpoint, tables="^t$"), checkpoint)
    unknown = [one.partition(" is not known")[0] for one in said if "step of" in one]
    assert unknown == ["Adam: step of a", "AdamAsync: step of b"]


@pytest.mark.parametrize(
    ("scalars", "beta2", "expected"),
    [
        ({"beta2_power": 4}, True, " is 3, from beta2_power"),
        ({"beta2_power": 4, "beta2_power_1": 4}, True, " is 3, from beta2_power"),
        (
            {"beta2_power": 4, "beta2_power_1": 6},
            True,
            " not known: .*_1 differ.*--drop",
        ),
        (
            {"beta2_power": 4},
            False,
            " not known: beta2_power tells nothing .*set beta2",
        ),
        ({"beta1_power": 4}, True, " not known: .*no beta2_power of it; there is no global_step"),
        ({"global_step": 7}, True, " is 7, from global_step: .*no beta2_power of it"),
        ({"a/global_step": 7, "b/global_step": 8}, True, " not known: .*leave one in the plan's"),
        ({"beta2_power": 1}, True, " is 0, from beta2_power"),
        ({"beta2_power": 1e6}, True, " not known: beta2_power is 0, which tells no number"),
    ],
)
def test_where_adams_step_is_not_known_it_is_said_what_is_missing(
    tmp_path, scalars, beta2, expected
):
    tensors = dict.fromkeys(("user", "user/Adam", "user/Adam_1"), np.zeros((3, 4), np.float32))
    for name, value in scalars.items():
        power = np.float32(0.999) ** np.float32(value)
        tensors[name] = power if "power" in name else np.int64(value)
    with migrate.open_checkpoint(write(tmp_path / "adam", tensors)) as checkpoint:
        plan = migrate.plan(checkpoint, tables="^user$")
        plan.tables[0].hyperparameters = {"beta2": 0.999} if beta2 else {}
        said = [one for one in semantics.notes(plan, checkpoint) if "step of user" in one]
        known = expected.startswith(" is ")
        assert (steps.optimizer_step(plan, plan.tables[0], checkpoint) is not None) == known
    assert len(said) == 1
    assert re.match("Adam: step of user" + (expected if known else " is" + expected), said[0]), said


def test_adam_async_continues_as_tensorflows_kernel_of_the_same_formula(tf1_checkpoints, tmp_path):
    """DeepRec's AdamAsync is LazyAdam with powers of its own: under its names, LazyAdam's state."""
    prefix = tf1_checkpoints / "lazy_adam"
    with migrate.open_checkpoint(prefix) as checkpoint:
        tensors = {"plain/city": checkpoint.read("plain/city")}
        for slot in ("", "_1"):
            tensors["plain/city/AdamAsync" + slot] = checkpoint.read("plain/city/Adam" + slot)
        for slot, power in (("_2", "beta1_power"), ("_3", "beta2_power")):
            tensors["plain/city/AdamAsync" + slot] = checkpoint.read(power)
    tensors["global_step"] = np.int64(1000)  # of all workers; the variable's own count is 3
    with migrate.open_checkpoint(write(tmp_path / "async", tensors)) as checkpoint:
        plan = migrate.plan(checkpoint, tables="^plain/city$")
        (table,) = plan.tables
        assert table.optimizer == "AdamAsync"
        assert table.slots == {
            "exp_avg": "plain/city/AdamAsync",
            "exp_avg_sq": "plain/city/AdamAsync_1",
        }
        table.hyperparameters = {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999}
        table.pooling = "sum"
        manifest = migrate.convert(plan, tmp_path / "out")
    assert any("AdamAsync: step of plain_city is 3" in note for note in manifest.notes)
    config = read_model(tmp_path / "out")
    ebc = build(config)
    load(ebc, tmp_path / "out")
    optimizer = build_optimizer(config, ebc)["plain_city"]
    weight = ebc.embedding_bags["plain_city"].weight
    load_optimizer(optimizer, dict(ebc.named_parameters()), tmp_path / "out")
    for bags in batches()["plain_city"]:
        optimizer.zero_grad()
        pooled = torch.nn.functional.embedding_bag(torch.from_numpy(bags), weight, mode="sum")
        (0.5 * (pooled**2).sum()).backward()
        optimizer.step()
    later = np.load(str(prefix) + ".npz")["later plain/city"]
    assert np.abs(weight.detach().numpy() - later).max() <= 2e-6


def test_rows_that_tensorflow_never_trained_take_its_first_step(tf2_checkpoints, tmp_path):
    """From an accumulator of 0.1: from FBGEMM's 0 every value would move by the learning rate."""
    prefix = tf2_checkpoints / "adagrad_ref"
    expected = np.load(str(prefix) + ".npz")
    tables, _ = continued(prefix, tmp_path / "out", "adagrad_ref", True)
    fresh = 0
    for table, variable in TABLES.items():
        before, later = expected[variable], expected["later " + variable]
        untrained = (expected[variable + ":accumulator"] == np.float32(0.1)).all(1)
        rows = untrained & (before != later).any(1)
        fresh += rows.sum()
        assert np.allclose(tables[table].detach().numpy()[rows], later[rows], atol=2e-6)
    assert fresh


def test_rows_must_be_known():
    with pytest.raises(ValueError, match="expected one of"):
        optimizers.Momentum([torch.nn.Parameter(torch.zeros(1))], 0.1, 0.9, rows="some")
