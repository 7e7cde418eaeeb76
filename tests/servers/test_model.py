"""Models over a server of one's own: torch's scores and steps are TensorFlow's."""

import numpy as np
import pytest
import torch

import migrate
from migrate.runtime.tables.by_id import TableById
from migrate.training.distributed.by_id import SharedTable
from semisync.common.errors import BadInput
from tests.servers.acme import SIZE, STEPS


def tensors(rows, part=slice(None)):
    return {name: torch.tensor(values[part]) for name, values in rows.items()}


def test_scores_are_tensorflows(job, plugin):
    model = migrate.load_model(job.prefix, output="logits")
    found = model(tensors(job.rows("before"))).detach()
    np.testing.assert_allclose(found, job.recorded["logits"], rtol=1e-5, atol=1e-6)
    assert "self.user_table = runtime.TableById(rows=7, dim=4)\n" in model.source
    assert "Acme" not in model.source


def test_steps_are_tensorflows(job, plugin):
    training, losses = migrate.build_training(job.prefix), []
    for number in range(STEPS):
        training.optimizer.zero_grad()
        batch = slice(number * SIZE, (number + 1) * SIZE)
        loss = training.module(tensors(job.rows("after"), batch))
        loss.backward()
        training.optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, job.recorded["losses"], rtol=1e-5)
    for name in ("user", "item"):
        table = getattr(training.module, f"{name}_table")
        order = [table.ids.tolist().index(id) for id in job.recorded["ids/" + name]]
        rows = table.weight.detach()[order]
        np.testing.assert_allclose(rows, job.recorded[name], rtol=2e-5, atol=2e-6)
    user = training.module.user_table
    order = [user.ids.tolist().index(id) for id in job.recorded["ids/user"]]
    sums = training.optimizer.state[user.weight]["sum"][order]
    np.testing.assert_allclose(sums, job.recorded["accumulator"], rtol=2e-5)


@pytest.mark.parametrize("of", [TableById, lambda rows, dim: SharedTable(TableById(rows, dim))])
def test_new_ids_begin_with_the_number_that_the_look_up_tells(of):
    table = of(rows=0, dim=3).train()
    rows = table(torch.tensor([[5, -5], [5, 7]]), torch.tensor(0.5))
    assert torch.equal(rows, torch.full((2, 2, 3), 0.5))
    assert sorted(table.ids.tolist()) == [-5, 5, 7] and table.weight.shape == (3, 3)


def test_without_the_plug_in_its_op_is_named(job):
    with pytest.raises(BadInput, match="unknown ops: AcmePull of node"):
        migrate.load_model(job.prefix)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"learning_rate": op', '"lr": op', "has the hyperparameters learning_rate or .* told lr"),
        ('"adagrad": "Adagrad"', '"adagrad": "Ada"', "the optimizer 'Ada' is not known"),
        ('{"accumulator": 0.25}', '{"sum": 0.25}', "Adagrad has no slot 'sum'"),
        ('op.number("rate")', 'op.number("rate") / 0', "train of the plug-in .*ZeroDivisionError"),
    ],
)
def test_what_it_tells_of_training_is_checked(job, plugin, before, after, said):
    text = plugin.read_text()
    assert before in text
    plugin.write_text(text.replace(before, after))
    with pytest.raises(BadInput, match=said):
        migrate.build_training(job.prefix)
