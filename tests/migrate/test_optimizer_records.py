"""The records of migrate.optimizers say what TensorFlow's kernels and optimizers do."""

import importlib
import json
import pathlib
import sys

import numpy as np
import pytest
import torch

import migrate
from migrate.optimizers.record import Optimizer
from migrate.optimizers.registry import LEAVES, OPTIMIZERS, TRAINING_OPS, table_slot
from migrate.optimizers.slots import Slots, initial_value, slot_of, state_name, unfused_name
from migrate.targets.reading import open_target
from tests.migrate.raw_tables import write_tfra
from tests.support.conversions import make_plan
from tests.support.require import tf1_python
from tests.support.written import written

DEEPREC = {"ApplyAdamAsync", "SparseApplyAdamAsync"}  # whose ops TensorFlow itself lacks
WITHOUT_RECORD = {
    "AdamWithAmsgrad",  # Keras's, whose slots an object graph names
    "AddSign",  # contrib's
    "GradientDescent",  # no slots
    "KerasMomentum",
    "PowerSign",  # contrib's
    "ProximalGradientDescent",  # no slots
}


def ask(python, name):
    """What write_slots.py wrote."""
    folder = written(python, pathlib.Path(__file__).with_name("write_slots.py"))
    return json.loads((folder / f"{name}.json").read_text())


@pytest.fixture(scope="module", params=["1.15", "2.x"])
def tensorflow(request):
    """The interpreter with that TensorFlow."""
    return tf1_python() if request.param == "1.15" else sys.executable


def test_slots_have_tensorflows_names_in_its_order_and_its_initial_values(tensorflow):
    for case, known in ask(tensorflow, "slots").items():
        record = OPTIMIZERS[case.split()[0].strip(",")]
        slots = record.slots_for(range(len(known["slots"])))
        assert {slot.name for slot in slots} == set(known["slots"])
        for k, slot in enumerate(slots):
            held = known["slots"][slot.name]
            assert slot_of(held["leaf"]) == (record.leaf, k)
            assert np.float32(held["initial"]) == np.float32(slot.initial)
            assert initial_value(record.name, k) == slot.initial


def test_a_setting_is_an_argument_of_tensorflows_optimizer_with_that_default(tensorflow):
    for case, known in ask(tensorflow, "slots").items():
        for slot in OPTIMIZERS[case.split()[0].strip(",")].slots:
            if slot.setting is not None:
                assert known["defaults"][slot.setting] == slot.initial


@pytest.mark.parametrize("resource", ["", "Resource"])
def test_slots_and_hyperparameters_are_inputs_of_the_training_op(tensorflow, resource):
    definitions = ask(tensorflow, "ops")
    for name in set(TRAINING_OPS) - DEEPREC:
        op, definition = TRAINING_OPS[name], definitions[resource + name]
        inputs, record = definition["inputs"], op.optimizer
        given = {value: key for key, value in record.hyperparameters.items()}
        for hyperparameter, number in op.hyperparameters.items():
            assert inputs[number] == given[hyperparameter]
        slots = record.slots_for(range(len(op.slots)))
        assert [inputs[k] for k in op.slots] == [slot.input or slot.name for slot in slots]
        assert set(record.flags) <= set(definition["attributes"])


def test_every_training_op_has_a_record_or_is_named_here(tensorflow):
    names = {name.replace("Resource", "", 1) for name in ask(tensorflow, "ops")}
    unknown = {name.partition("Apply")[2] for name in names - set(TRAINING_OPS)}
    assert unknown <= WITHOUT_RECORD


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_counterpart_is_a_class_that_takes_the_arguments(name):
    record = OPTIMIZERS[name]
    if record.counterpart is None:
        return
    module, _, leaf = record.counterpart.path.rpartition(".")
    kind = getattr(importlib.import_module(module), leaf)
    settings = dict.fromkeys(record.counterpart.arguments, 0.5)
    arguments = record.arguments_for(settings, [slot.torch for slot in record.all_slots])
    weight = torch.nn.Parameter(torch.zeros(3, 2))
    optimizer = kind([weight], **arguments)
    weight.grad = torch.ones(3, 2)
    optimizer.step()
    assert {slot.torch for slot in record.all_slots} <= set(optimizer.state[weight])


def test_adagrads_counterpart_adds_no_epsilon_either():
    given = {"learning_rate": 0.1}
    assert OPTIMIZERS["Adagrad"].arguments_for(given, ["sum"]) == {"lr": 0.1, "eps": 0.0}


def test_optimizers_of_torch_begin_with_tensorflows_values():
    from migrate.torchrec import optimizers

    weight = torch.nn.Parameter(torch.zeros(3, 2))
    for optimizer in [
        optimizers.Adadelta([weight]),
        optimizers.Adagrad([weight], lr=0.1),
        optimizers.Adam([weight]),
        optimizers.Ftrl([weight], lr=0.1),
        optimizers.Momentum([weight], lr=0.1, momentum=0.9),
        optimizers.ProximalAdagrad([weight], lr=0.1),
        optimizers.RMSProp([weight], lr=0.1, centered=True),
    ]:
        (group,) = optimizer.param_groups
        assert optimizer.initial_state(group) == {
            slot.torch: slot.initial for slot in optimizer.record.all_slots
        }


@pytest.mark.parametrize(
    ("hyperparameters", "name", "continued"),
    [
        ({}, "Ftrl", True),
        ({"learning_rate_power": -0.5}, "Ftrl", True),
        ({"learning_rate_power": -0.6}, "Ftrl", True),
        ({"nesterov": 1.0}, "Momentum", True),
        ({"nesterov": 1.0}, "Adam", False),
        ({"nesterov": 1.0}, "LazyAdam", False),
        ({"sparse_rmsprop": 1.0}, "AdamAsync", False),
        ({}, "AdagradDA", False),
    ],
)
def test_a_setting_that_the_counterpart_lacks_leaves_none(hyperparameters, name, continued):
    assert (OPTIMIZERS[name].continued_by(hyperparameters) is not None) == continued


def test_lazy_adams_slots_are_named_as_adams():
    assert "LazyAdam" not in LEAVES
    assert slot_of("Adam_1") == ("Adam", 1)
    assert slot_of("LazyAdam") is None
    assert Slots("Adam", {0: "user/Adam"}, lazy=True).variant == "LazyAdam"


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        ("Adam_v", ("Adam", 1)),
        ("adagrad_norm", ("Adagrad", 0)),
        ("ftrl_zero", ("Ftrl", 1)),
        ("AdagradDA_gradient_squared_accumulator", ("AdagradDA", 1)),
        ("RMSProp_momentum", ("RMSProp", 1)),
        ("RMSprop_rms", None),  # Keras's, which begins with 0
        ("rmsprop_n", None),  # Monolith's, which is another
        ("LazyAdam_m", None),
    ],
)
def test_slots_of_hash_tables_are_known_by_their_names(name, slot):
    assert table_slot(name) == slot


def test_fbgemms_states_have_the_tables_name():
    assert state_name("user", "momentum1") == "user.momentum1"
    assert state_name("user", "exp_avg") == "exp_avg"
    assert unfused_name("user", "user.momentum1") == "sum"
    assert unfused_name("user", "exp_avg") == "exp_avg"


FILLS = {
    "ProximalAdagrad": {"accumulator": 0.1},
    "AdagradDA": {"gradient_accumulator": 0.0, "gradient_squared_accumulator": 0.1},
    "RMSProp": {"rms": 1.0, "momentum": 0.0},
    "Adadelta": {"accum": 0.0, "accum_update": 0.0},
}


@pytest.mark.parametrize("optimizer", sorted(FILLS))
def test_a_row_without_state_begins_where_tensorflow_begins_it(tmp_path, optimizer):
    """In TFRA's tables, too: of these optimizers all rows without state were filled with 0."""
    record = OPTIMIZERS[optimizer]
    ids, rows = [1, 2, 3], [[1], [2], [3]]
    state = [([1, 2], [[10], [20]])]
    slots = [(f"{optimizer}_{slot}", state) for slot in FILLS[optimizer]]
    source = write_tfra(tmp_path / "in", "t", [(ids, rows)], slots)
    plan = make_plan(source)
    (table,) = plan.tables
    assert table.optimizer == optimizer
    migrate.convert(plan, tmp_path / "out")
    reader = open_target(str(tmp_path / "out"), "dcp")
    for slot in record.slots:
        state = reader.rows(f"optim.state.ebc.embedding_bags.t.weight.{slot.torch}", 0, 3)
        expected = np.float32(FILLS[optimizer][slot.name])
        assert state.flatten().tolist() == [10, 20, expected]


def test_centered_rmsprop_of_a_hash_table_has_its_mean(tmp_path):
    state = [([1], [[10]])]
    slots = [(f"RMSProp_{slot}", state) for slot in ("rms", "mg", "momentum")]
    source = write_tfra(tmp_path / "in", "t", [([1], [[1]])], slots)
    (table,) = make_plan(source).tables
    assert table.slots == {
        "square_avg": "RMSProp_rms",
        "grad_avg": "RMSProp_mg",
        "momentum_buffer": "RMSProp_momentum",
    }


def test_a_record_is_listed_under_its_own_name():
    assert all(name == record.name for name, record in OPTIMIZERS.items())
    assert all(isinstance(record, Optimizer) and record.note for record in OPTIMIZERS.values())
