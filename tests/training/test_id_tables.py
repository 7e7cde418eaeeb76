"""Tables by raw ids train under the loop of what lies upon them, in any number of processes."""

import shutil

import pytest
import torch

from migrate.training import Settings, Task, train
from tests.id_tables.process import Clicks, Days, all_of, run
from tests.id_tables.reference import assert_same


def straight(out, resume=False):
    """(rows, dense weights) of a training in one process, to its end."""
    module = Clicks()
    optimizer = torch.optim.Adagrad(module.dense.parameters(), lr=0.1)
    train(Task(module, optimizer), Days(0, 1), str(out), Settings(checkpoint_every=100), resume)
    return all_of(module.tables), module.dense.weight.detach()


@pytest.mark.long
def test_stopped_and_gone_on_with_it_ends_with_the_same_bits(interpreters, tmp_path):
    rows, weights = straight(tmp_path / "straight")
    ((step, *found),) = run(interpreters / "python", "looping", tmp_path, 1)
    assert step == 12 and torch.equal(found[1], weights)
    assert_same(found[0][0], rows[0], 0)
    assert found[0][1:] == rows[1:]


def test_two_processes_take_the_steps_of_one_and_one_goes_on_from_them(interpreters, tmp_path):
    rows, weights = straight(tmp_path / "straight")
    parts = run(interpreters / "python", "looping", tmp_path, 2)
    together = {one: row for _, (own, *_), _ in parts for one, row in own.items()}
    assert_same(together, rows[0], 1e-4)
    for _, _, dense in parts:
        torch.testing.assert_close(dense, weights, rtol=1e-4, atol=1e-4)
    checkpoints = tmp_path / "looping-2" / "checkpoints"
    shutil.rmtree(checkpoints / "step-00000012")
    found, dense = straight(tmp_path / "looping-2", resume=True)
    assert_same(found[0], rows[0], 1e-4)
    assert found[1:] == rows[1:]
    torch.testing.assert_close(dense, weights, rtol=1e-4, atol=1e-4)
