"""A table by raw ids takes the steps of one whose rows are declared."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchrec import KeyedJaggedTensor

from migrate.id_tables import IdEmbeddings, IdTable
from migrate.torchrec import optimizers
from migrate.torchrec.weights import combiner_weights
from semisync.common.errors import UsageError
from tests.id_tables.reference import (
    DIM,
    FEATURES,
    OPTIMIZERS,
    Declared,
    assert_same,
    columns_of,
    loss_of,
    tables,
)

IDS = [0, 1, -1, 5, -8, 2**62, -(2**63), 2**63 - 1, 10**12, 77]
_BATCH = st.lists(st.lists(st.sampled_from(IDS), max_size=4), min_size=4, max_size=4)


def of(bags, weighted=False):
    """A batch of two features with two bags each."""
    features = {}
    for name, own in zip(FEATURES, (bags[:2], bags[2:])):
        ids = torch.tensor(sum(own, []), dtype=torch.int64)
        offsets = torch.tensor([0, len(own[0]), len(own[0]) + len(own[1])])
        weights = (torch.arange(len(ids)) % 3 + 1.0,) if weighted else ()
        features[name] = (ids, offsets, *weights)
    return features


TARGETS = torch.linspace(-1, 1, 4 * DIM).reshape(4, DIM)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@given(st.lists(_BATCH, min_size=1, max_size=5), st.booleans())
@pytest.mark.few(4)
def test_every_optimizer_takes_the_steps_that_it_takes_of_declared_rows(kind, batches, weighted):
    table, settings = tables(), OPTIMIZERS[kind]
    optimizer = table.optimizer(getattr(optimizers, kind), **settings)
    declared = Declared(IDS, kind, settings)
    for batch in (of(bags, weighted) for bags in batches):
        loss = loss_of(table(batch), TARGETS)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(loss.detach(), declared.step(batch, TARGETS))
    assert_same(columns_of(table), declared.columns())


@pytest.mark.parametrize("pooling", ["sum", "mean", "sqrtn"])
@given(_BATCH, st.booleans())
def test_pooling_is_that_of_tensorflows_combiners(pooling, bags, weighted):
    table, rows = tables(pooling=pooling), tables(pooling=None)
    for one in (table, rows):
        one.optimizer(optimizers.GradientDescent, lr=1.0)
    batch = of(bags, weighted)
    found = table(batch)
    for name, (ids, offsets, *weights) in batch.items():
        each = combiner_weights(pooling, offsets.diff(), *weights).unsqueeze(1)
        vectors = rows({**batch, name: ids})[name] * each
        wanted = torch.stack([vectors[a:b].sum(0) for a, b in zip(offsets, offsets[1:])])
        torch.testing.assert_close(found[name], wanted)


def test_a_keyed_jagged_tensor_is_the_same_as_ids_and_offsets():
    bags = [[5, 5], [], [2**62], [-8, 1, 5]]
    table = tables()
    table.optimizer(optimizers.GradientDescent, lr=1.0)
    ids = torch.tensor(sum(bags, []))
    jagged = KeyedJaggedTensor(list(FEATURES), ids, lengths=torch.tensor([len(b) for b in bags]))
    found, wanted = table(jagged), table(of(bags))
    assert all(torch.equal(found[name], wanted[name]) for name in FEATURES)


def test_weights_of_ids_get_their_gradient():
    table = tables()
    table.optimizer(optimizers.GradientDescent, lr=1.0)
    weights = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    ids, offsets = torch.tensor([4, 4, 9]), torch.tensor([0, 2, 3])
    none = (torch.tensor([], dtype=torch.int64), torch.tensor([0]))
    found = table({"user": (ids, offsets, weights), "friend": none})["user"]
    found[1].sum().backward()
    rows = tables(pooling=None, unknown="initial").eval()(dict.fromkeys(FEATURES, ids))["user"]
    torch.testing.assert_close(weights.grad, torch.tensor([0.0, 0.0, float(rows[2].sum())]))


def test_without_pooling_each_id_has_its_vector_in_the_shape_of_the_ids():
    table = IdEmbeddings([IdTable("words", 3, ["word"], pooling=None)])
    optimizer = table.optimizer(optimizers.GradientDescent, lr=1.0)
    ids = torch.tensor([[7, 7], [-2, 7]])
    before = table({"word": ids})["word"]
    assert before.shape == (2, 2, 3) and torch.equal(before[0, 0], before[1, 1])
    before.sum().backward()
    optimizer.step()
    after = table({"word": ids})["word"]
    torch.testing.assert_close(
        before - after, torch.tensor([[3.0, 3], [1, 3]])[..., None].expand(2, 2, 3)
    )


def test_two_look_ups_before_a_step_are_one_batch():
    batches = [of([[5], [1, 5], [], [77]]), of([[5, 5], [], [0], []])]
    table, declared = tables(), Declared(IDS, "Adagrad", {"lr": 0.1})
    optimizer = table.optimizer(optimizers.Adagrad, lr=0.1)
    for batch in batches:
        loss_of(table(batch), TARGETS).backward()
    optimizer.step()
    both = {
        name: tuple(
            torch.cat([batches[0][name][0], batches[1][name][0]])
            if k == 0
            else torch.cat(
                [batches[0][name][1], batches[1][name][1][1:] + len(batches[0][name][0])]
            )
            for k in range(2)
        )
        for name in FEATURES
    }
    targets = torch.cat([TARGETS[:2], TARGETS[:2], TARGETS[2:], TARGETS[2:]])
    declared.step(both, targets)
    assert_same(columns_of(table), declared.columns())


def test_a_gradient_that_is_set_to_zero_changes_nothing():
    table, other = tables(), tables()
    steps = [one.optimizer(optimizers.Adam, lr=0.1) for one in (table, other)]
    for one, optimizer in zip((table, other), steps):
        loss_of(one(of([[5], [1], [], []])), TARGETS).backward()
        optimizer.step()
    loss_of(table(of([[5], [77], [], []])), TARGETS).backward()
    steps[0].zero_grad()
    steps[0].step()  # as without a gradient
    table(of([[1], [5], [], []]))
    steps[0].step()
    later = loss_of(table(of([[0], [], [], [5]])), TARGETS)
    steps[0].zero_grad()  # between look-up and backward
    later.backward()
    steps[0].step()
    loss_of(other(of([[0], [], [], [5]])), TARGETS).backward()
    steps[1].step()
    found = columns_of(table)
    found.pop(77)
    assert_same(found, columns_of(other))
    assert table.stores["people"].step == other.stores["people"].step == 2


@pytest.mark.long
def test_room_grows_with_the_ids():
    table = tables()
    optimizer = table.optimizer(optimizers.Ftrl, lr=0.1)
    ids = torch.from_numpy(np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 5000))
    declared = Declared(ids.tolist(), "Ftrl", {"lr": 0.1})
    for part in ids.split(700):
        batch = {
            "user": (part, torch.tensor([0, len(part)])),
            "friend": (part[:1], torch.tensor([0, 1])),
        }
        loss_of(table(batch), TARGETS[:2]).backward()
        optimizer.step()
        declared.step(batch, TARGETS[:2])
    assert table.rows() == {"people": 5000}
    assert_same(columns_of(table), declared.columns(), 1e-4)


def test_a_frozen_look_up_changes_nothing_and_counts_the_unknown():
    zeros, initial = tables(pooling=None), tables(pooling=None, unknown="initial")
    vector = tables(pooling=None, unknown=[1.0, 2.0, 3.0, 4.0])
    ids, more = torch.tensor([3, 4]), torch.tensor([4, 9, 9, 10])
    for table in (zeros, initial, vector):
        table.optimizer(optimizers.GradientDescent, lr=1.0)
        table({"user": ids, "friend": ids})
    anew = initial({"user": more, "friend": ids})["user"]
    other = tables(pooling=None, unknown="initial").eval()
    assert torch.equal(other({"user": more, "friend": ids})["user"], anew)
    for table in (zeros, vector):
        with torch.no_grad():
            found = table({"user": more, "friend": ids})["user"]
        assert torch.equal(found[0], anew[0]) and table.rows() == {"people": 2}
        assert table.unknown() == {"people": 0.5} and table.unknown() == {"people": 0.0}
        unknown = torch.zeros(4) if table is zeros else torch.tensor([1.0, 2, 3, 4])
        assert all(torch.equal(one, unknown) for one in found[1:])


def test_tables_may_have_optimizers_of_their_own():
    table = IdEmbeddings(
        [IdTable("wide", 1, ["a"], pooling=None), IdTable("deep", 2, ["b"], pooling=None)]
    )
    wide = table.optimizer(optimizers.Ftrl, ["wide"], lr=0.1)
    deep = table.optimizer(optimizers.Adagrad, ["deep"], lr=0.1)
    batch = {"a": torch.tensor([1]), "b": torch.tensor([2])}
    before = table(batch)
    sum(one.sum() for one in before.values()).backward()
    wide.step()
    with torch.no_grad():
        after = table(batch)
    assert torch.equal(before["b"], after["b"]) and not torch.equal(before["a"], after["a"])
    deep.step()
    with torch.no_grad():
        assert not torch.equal(before["b"], table(batch)["b"])


def refused(call):
    with pytest.raises(UsageError) as error:
        call()
    return str(error.value)


def test_what_is_wrong_is_said():
    table = tables()
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0, 2])
    batch = {"user": (ids, offsets), "friend": (ids, offsets)}
    assert "no optimizer" in refused(lambda: table(batch))
    optimizer = table.optimizer(optimizers.GradientDescent, lr=1.0)
    assert "already" in refused(lambda: table.optimizer(optimizers.Adagrad, lr=1.0))
    assert "is not an optimizer of" in refused(lambda: tables().optimizer(torch.optim.Adam))
    assert "no table 'x'" in refused(lambda: tables().optimizer(optimizers.Adagrad, ["x"], lr=1))
    assert "'friend'" in refused(lambda: table({"user": (ids, offsets)}))
    assert "no offsets" in refused(lambda: table({**batch, "user": ids}))
    assert "do not ascend" in refused(lambda: table({**batch, "user": (ids, torch.tensor([0, 1]))}))
    assert "torch.float32" in refused(lambda: table({**batch, "user": (ids.float(), offsets)}))
    assert "weights" in refused(lambda: table({**batch, "user": (ids, offsets, torch.ones(3))}))
    loss = loss_of(table(batch), TARGETS[:2])
    optimizer.step()
    assert "after the step" in refused(loss.backward)
    assert "two tables" in refused(lambda: IdEmbeddings([IdTable("a", 1, ["f"])] * 2))
    assert "pooling" in refused(lambda: IdTable("a", 1, ["f"], pooling="max"))
    assert "dim 0" in refused(lambda: IdTable("a", 0, ["f"]))
    assert "a vector of 3" in refused(lambda: IdTable("a", 3, ["f"], unknown=[1.0]))
