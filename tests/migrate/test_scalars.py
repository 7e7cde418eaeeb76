"""A trained scalar keeps its optimizer's slots; what a training step counts with stands apart."""

import pathlib
import sys

import numpy as np
import pytest
import torch

import migrate
from migrate.model.training.build import build_training
from migrate.model.training.steps import compare_steps, recorded_step
from migrate.torchrec import load_optimizer
from migrate.verification import verify
from semisync.cli import main
from tests.back.same import assert_same
from tests.support.conversions import make_plan, without_graph
from tests.support.require import tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_fm.py")
OPTIMIZERS = {  # by the writer's name: torch's names of the slots of w0
    "adagrad": {"sum": "w0/Adagrad"},
    "adam": {"exp_avg": "w0/Adam", "exp_avg_sq": "w0/Adam_1"},
    "two": {"exp_avg": "w0/Adam", "exp_avg_sq": "w0/Adam_1"},
}


@pytest.fixture(scope="session", params=["1.15", "2.x"])
def machines(request):
    """Folder of the factorization machines of each TensorFlow."""
    return written(tf1_python() if request.param == "1.15" else sys.executable, _WRITER)


@pytest.fixture(params=sorted(OPTIMIZERS))
def machine(machines, request):
    return machines / request.param / "model.ckpt-3"


@pytest.fixture
def out(machine, tmp_path):
    migrate.convert(make_plan(machine), tmp_path / "out")
    return tmp_path / "out"


def slots_of(machine):
    return OPTIMIZERS[machine.parent.name]


def test_a_bias_of_shape_nothing_is_a_dense_variable_with_its_slots(machine, out):
    plan = make_plan(machine)
    dense = {one.variable: one for one in plan.dense}
    assert set(dense) == {"w0", "scale"}  # of which nothing trains the second
    assert (dense["w0"].shape, dense["w0"].slots) == ([], slots_of(machine))
    assert dense["scale"].slots == {}
    assert all(name.startswith(("global_step", "beta")) for name in plan.scalars)
    assert not [note for note in plan.notes if "counters" in note]
    manifest = migrate.read_manifest(out)
    assert manifest.dropped == {}
    written = {one.source: one.fqn for one in manifest.tensors if one.role == "dense slot"}
    for slot, source in slots_of(machine).items():
        assert written[source] == f"dense_optim.w0.{slot}"
    assert verify(str(machine), str(out)).verified
    assert migrate.Plan.from_yaml(plan.to_yaml()) == plan


def test_of_two_adams_each_variable_has_the_step_of_its_own(machines):
    """Their powers differ, and their names do not tell whose each is."""
    plan = make_plan(machines / "two" / "model.ckpt-3")
    powers = {one.variable: one.power for one in [*plan.tables, *plan.dense]}
    assert powers == {"v": "beta2_power", "w": "beta2_power", "w0": "beta2_power_1", "scale": None}


def test_the_optimizer_gets_them(machine, out):
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([parameter], 0.1)
    load_optimizer(optimizer, {"w0": parameter}, str(out))
    with migrate.open_checkpoint(machine) as checkpoint:
        for slot, source in slots_of(machine).items():
            assert optimizer.state[parameter][slot].item() == checkpoint.read(source).item()
    if "exp_avg" in slots_of(machine):
        assert optimizer.state[parameter]["step"] == 3


def test_they_come_back_bit_for_bit(machine, out, tmp_path):
    migrate.write_checkpoint(out, tmp_path / "back", original=machine)
    assert_same(machine, tmp_path / "back")


def test_training_goes_on_as_in_tensorflow(machine, tmp_path):
    with np.load(machine.parent / "steps.npz") as file:
        kept = {name: file[name] for name in file}
    after = {key[len("after/") :]: kept[key] for key in kept if key.startswith("after/")}
    steps = [
        recorded_step(
            {"ids": torch.tensor(kept["ids"][k]), "label": torch.tensor(kept["label"][k])},
            float(kept["loss"][k]),
            {name: values[k] for name, values in after.items()},
        )
        for k in range(len(kept["loss"]))
    ]
    training = build_training(machine)
    report = compare_steps(training, steps)
    assert report.exceeded is None
    assert report.compared["slot"] == 3 * len(slots_of(machine))
    migrate.write_checkpoint(training, tmp_path / "back", original=machine)
    with migrate.open_checkpoint(tmp_path / "back") as back:
        for name in ["w0", *slots_of(machine).values()]:
            assert np.allclose(back.read(name), after[name][-1], rtol=1e-4), name


def test_without_a_graph_names_tell_and_it_is_said_as_a_guess(machine, tmp_path):
    prefix = without_graph(machine.parent, machine.name, tmp_path)
    plan = make_plan(prefix, tables="^[vw]$")
    assert {one.variable: one.slots for one in plan.dense if one.slots} == {"w0": slots_of(machine)}
    (note,) = [note for note in plan.notes if "counters" in note]
    for name in plan.scalars:
        assert name in note
    assert "global_step" in plan.scalars


def test_what_is_not_carried_is_said_by_name(machine, tmp_path, capsys):
    assert main(["convert", str(machine), str(tmp_path / "out"), "--drop", "w0/"]) == 0
    names = ", ".join(sorted(slots_of(machine).values()))
    summary = capsys.readouterr().out.partition("wrote ")[2]
    assert f"not carried: {names}: --drop" in summary


def test_a_line_that_an_edited_plan_lacks_is_said_too(machine, tmp_path, capsys):
    plan = make_plan(machine)
    plan.dense = [one for one in plan.dense if one.variable != "scale"]
    (tmp_path / "plan.yaml").write_text(plan.to_yaml())
    arguments = [str(machine), str(tmp_path / "out"), "--plan", str(tmp_path / "plan.yaml")]
    assert main(["convert", *arguments]) == 0
    assert "not carried: scale: the plan leaves it out" in capsys.readouterr().out
