"""Training on by raw id: torch's steps are TFRA's, for ids that are new as well."""

import numpy as np
import pytest
import torch

import migrate
from migrate.runtime.tables.by_id import TableById
from semisync.common.errors import BadInput
from tests.model.by_id.jobs import STEPS

SLOTS = {
    "sgd": {},
    "momentum": {"momentum_buffer": "deep_users_Momentum_momentum"},
    "adagrad": {"sum": "deep_users_Adagrad_accumulator"},
    "adam": {"exp_avg": "deep_users_Adam_m", "exp_avg_sq": "deep_users_Adam_v"},
    "rmsprop": {
        "square_avg": "deep_users_RMSProp_rms",
        "momentum_buffer": "deep_users_RMSProp_momentum",
    },
    "ftrl": {"accum": "deep_users_Ftrl_accum", "linear": "deep_users_Ftrl_linear"},
}


def train(job):
    """(the training after the recorded steps, its losses)"""
    training, losses = migrate.build_training(job.prefix), []
    for number in range(STEPS):
        training.optimizer.zero_grad()
        loss = training.module(job.batch(number))
        loss.backward()
        training.optimizer.step()
        losses.append(loss.item())
    return training, losses


def assert_rows(ids, rows, expected):
    assert sorted(ids.tolist()) == sorted(expected)
    for id, row in zip(ids.tolist(), rows.detach().numpy()):
        np.testing.assert_allclose(row, expected[id], rtol=2e-5, atol=2e-6, err_msg=str(id))


@pytest.mark.few(3)
@pytest.mark.parametrize("name", [*SLOTS, "three_shards", "sparse", "safe", "in_files"])
def test_steps_are_tfras(by_id, name):
    job = by_id(name)
    training, losses = train(job)
    np.testing.assert_allclose(losses, job.recorded["losses"], rtol=1e-5)
    users = training.module.deep_users
    assert len(users.ids) == 10  # three of them new
    assert_rows(users.ids, users.weight, job.table("deep_users"))
    kernel = job.recorded["dense/out/kernel"].T
    np.testing.assert_allclose(training.module.out.weight.detach(), kernel, rtol=2e-5, atol=2e-6)
    slots = training.optimizer.state[users.weight]
    for slot, table in SLOTS.get(name, {}).items():
        assert_rows(users.ids, slots[slot], job.table(table))


def test_the_state_dict_takes_new_ids_along(by_id):
    training, _ = train(by_id("adagrad"))
    state = training.module.state_dict()
    other = migrate.load_model(by_id("adagrad").prefix)
    other.load_state_dict(state)
    batch = by_id("adagrad").batch(0)
    again = migrate.build_training(by_id("adagrad").prefix)
    again.module.load_state_dict(state)
    torch.testing.assert_close(again.module(batch), training.module(batch))


def test_a_look_up_whose_ids_repeat_is_refused(by_id):
    """TFRA keeps the last gradient of an id alone."""
    with pytest.raises(BadInput, match="may have an id several times"):
        migrate.build_training(by_id("plain").prefix)


def test_a_table_that_several_look_ups_train_is_refused(by_id):
    """TFRA keeps the rows of the last one."""
    assert migrate.load_model(by_id("twice").prefix)
    with pytest.raises(BadInput, match="each those of a look-up of its own"):
        migrate.build_training(by_id("twice").prefix)


def test_each_look_up_of_a_table_may_bring_new_ids():
    table, zeros = TableById(0, 2), torch.zeros(2)
    assert table(torch.tensor([], dtype=torch.int64), zeros).shape == (0, 2)
    first, second = table(torch.tensor([1]), zeros), table(torch.tensor([2, 1]), zeros)
    (first.sum() + 2 * second.sum()).backward()
    assert table.weight.grad.tolist() == [[3, 3], [2, 2]]
    table(torch.tensor([3, 2]), zeros).sum().backward()  # gradients of several batches add up
    assert table.weight.grad.tolist() == [[3, 3], [3, 3], [1, 1]]
    assert table.ids.tolist() == [1, 2, 3]


def test_new_ids_copy_a_table_and_its_slots_no_more_than_when_they_double(by_id):
    training = migrate.build_training(by_id("adagrad").prefix)
    target = next(one for one in training.optimizer.targets if one.begins)
    table = training.module.get_submodule(target.attribute.rpartition(".")[0])

    def places():
        slots = [training.optimizer.state[target.tensor][name] for name in target.begins]
        return [one.data_ptr() for one in (table.ids, table.weight, *slots)]

    seen, count = [], len(table.ids)
    for new in range(40):
        table(torch.tensor([10**6 + new]), torch.full((table.weight.shape[1],), new * 1.0))
        training.optimizer.give_new_rows_slots()
        seen.append(places())
    assert len({tuple(one) for one in seen}) < 8
    assert table.weight[count:, 0].tolist() == list(range(40))
    state = training.module.state_dict(), training.optimizer.state_dict()["state"]
    for tensor in (state[0][target.attribute], *(state[1].values())):
        for one in [tensor] if torch.is_tensor(tensor) else tensor.values():
            assert one.untyped_storage().nbytes() == one.nbytes
    assert table.ids.untyped_storage().nbytes() == table.ids.nbytes


def test_rows_that_a_look_up_clips_are_refused(by_id):
    with pytest.raises(BadInput, match="read rows as they are, without max_norm"):
        migrate.load_model(by_id("clipped").prefix)
