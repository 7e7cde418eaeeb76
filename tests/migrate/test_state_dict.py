"""`dcp.load(model.state_dict(), checkpoint_id=OUT)` fills a converted model, its slots too."""

import pathlib

import pytest
import torch
from torch.distributed import checkpoint as dcp

import migrate
from migrate.model.training.build import build_training
from migrate.targets.reading import open_target
from migrate.torchrec import load_optimizer
from migrate.verification import verify
from semisync.cli import main
from tests.back.same import assert_same
from tests.model.features import source_of
from tests.support.require import fastest_tensorflow
from tests.support.written import written

_TESTS = pathlib.Path(__file__).parents[1]
JOBS = {  # tables, kernels, a BatchNorm and a table in parts; a bias of shape [], two Adams
    "job": ("migration/write_job.py", "model.ckpt"),
    "machine": ("migrate/write_fm.py", "two/model.ckpt-3"),
}


@pytest.fixture(scope="module", params=sorted(JOBS))
def job(request, tmp_path_factory):
    """(prefix, the directory of its conversion with the model)"""
    writer, prefix = JOBS[request.param]
    prefix = written(fastest_tensorflow(), _TESTS / writer) / prefix
    out = tmp_path_factory.mktemp("converted") / "out"
    assert main(["convert", str(prefix), str(out), "--model"]) == 0
    return prefix, out


def emptied(state):
    """Tensors of the same sizes, with values that no model has."""
    return {name: torch.full_like(value, 77) for name, value in state.items()}


def test_the_state_dict_of_the_model_loads(job):
    _, out = job
    model = source_of(out).load()
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(emptied(expected))
    dcp.load(model.state_dict(), checkpoint_id=out, no_dist=True)
    assert len(expected) > 3
    for name, value in model.state_dict().items():
        assert torch.equal(value, expected[name]), name


def test_the_slots_load_by_the_names_of_the_parameters(job):
    prefix, out = job
    training = build_training(prefix)
    slots = training.optimizer.named_slots()
    state = {}
    for (name, slot), value in slots.items():
        state.setdefault(name, {})[slot] = torch.full_like(value, 77)
    dcp.load({"optim": {"state": state}}, checkpoint_id=out, no_dist=True)
    assert len(slots) > 3
    for (name, slot), value in slots.items():
        assert torch.equal(state[name][slot], value), (name, slot)


def test_a_table_has_one_name_and_its_bytes_once(job):
    _, out = job
    manifest = migrate.read_manifest(out)
    model = source_of(out).load()
    stored = open_target(str(out), "dcp").tensors
    for table in manifest.tables:
        assert table.fqn in model.state_dict()
        assert [name for name in stored if name.endswith(f".{table.name}.weight")] == [table.fqn]
    turned = [one.fqn for one in manifest.renamed if not one.as_written]
    assert all(fqn.startswith("dense") for fqn in turned)


def test_the_ways_on_and_back_find_a_table_by_its_name(job, tmp_path):
    prefix, out = job
    table = migrate.read_manifest(out).tables[0]
    weight = torch.nn.Parameter(torch.zeros(table.rows, table.dim))
    optimizer = torch.optim.SGD([weight], 0.1)
    loaded = load_optimizer(optimizer, {table.fqn: weight}, str(out))
    assert all(name.startswith(f"optim.state.{table.fqn}.") for name in loaded)
    migrate.write_checkpoint(out, tmp_path / "back", original=prefix)
    assert_same(prefix, tmp_path / "back")


def test_names_that_lead_elsewhere_are_found(job):
    prefix, out = job
    assert verify(str(prefix), str(out)).verified
    manifest = migrate.read_manifest(out)
    first, second = [one for one in manifest.renamed if not one.name.startswith("optim")][:2]
    first.fqn, second.fqn = second.fqn, first.fqn
    before = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(manifest.to_json())
    found = verify(str(prefix), str(out))
    (out / "manifest.json").write_text(before)
    assert any("model.py" in sentence and first.name in sentence for sentence in found.differences)


def test_a_variable_called_as_a_layers_weight_keeps_apart(tmp_path):
    """dense.bias is the conversion's name of the variable `bias`, and a layer's of its own."""
    writer = _TESTS / "migrate" / "write_bias.py"
    prefix = written(fastest_tensorflow(), writer) / "model.ckpt"
    out = tmp_path / "out"
    assert main(["convert", str(prefix), str(out), "--model"]) == 0
    model = source_of(out).load()
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(emptied(expected))
    dcp.load(model.state_dict(), checkpoint_id=out, no_dist=True)
    for name, value in model.state_dict().items():
        assert torch.equal(value, expected[name]), name
