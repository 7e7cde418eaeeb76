"""The next item is learned by the softmax over all items, or by draws that stand for it."""

import math

import numpy
import pytest
import torch

from migrate.sequences import Hstu, Packed, Retrieval, RetrievalModel, SasRec, measured, ranks
from semisync.common.errors import BadInput, UsageError

ITEMS, DIM = 7, 4
FOLLOWING = torch.tensor([5, 5, 0, 1, 5])
FOLLOWS = list(enumerate(FOLLOWING.tolist()))


def drawn():
    torch.manual_seed(0)
    states = torch.randn(5, DIM, dtype=torch.float64, requires_grad=True)
    table = torch.randn(ITEMS, DIM, dtype=torch.float64, requires_grad=True)
    return states, table


def loss_of(task, states, table, negatives=None):
    negatives = task.draw(FOLLOWING) if negatives is None else negatives
    loss = task.loss(states, FOLLOWING, table[FOLLOWING], negatives, table[negatives.rows])
    return loss.item()


def scores_of(states, table, temperature, normalise=True):
    """[5, ITEMS], by numpy."""
    users, items = states.detach().numpy(), table.detach().numpy()
    if normalise:
        users = users / numpy.linalg.norm(users, axis=1, keepdims=True)
        items = items / numpy.linalg.norm(items, axis=1, keepdims=True)
    return users @ items.T / temperature


@pytest.mark.parametrize("normalise", [True, False])
def test_all_items_are_the_full_softmax(normalise):
    states, table = drawn()
    task = Retrieval(ITEMS, "all", temperature=0.3, normalise=normalise)
    scores = scores_of(states, table, 0.3, normalise)
    expected = [math.log(numpy.exp(scores[i]).sum()) - scores[i, item] for i, item in FOLLOWS]
    assert loss_of(task, states, table) == pytest.approx(numpy.mean(expected), rel=1e-12)


def test_a_draw_that_is_the_next_item_is_no_negative():
    states, table = drawn()
    task = Retrieval(ITEMS, "uniform", count=2, temperature=0.3, log_q=False)
    negatives = task.draw(FOLLOWING)._replace(rows=torch.tensor([5, 2]))
    scores = scores_of(states, table, 0.3)
    expected = []
    for i, item in FOLLOWS:
        against = [item, *(row for row in (5, 2) if row != item)]
        expected.append(math.log(numpy.exp(scores[i, against]).sum()) - scores[i, item])
    assert loss_of(task, states, table, negatives) == pytest.approx(numpy.mean(expected))


@pytest.mark.parametrize(("kind", "count"), [("uniform", 3), ("in-batch", 3)])
def test_the_sum_over_draws_is_in_the_mean_that_over_all_items(kind, count):
    """Of in-batch draws, over the items that the batch has; that is where q is not 0."""
    states, table = drawn()
    task = Retrieval(ITEMS, kind, count, temperature=1.0)
    there = range(ITEMS) if kind == "uniform" else (0, 1, 5)
    every = numpy.exp(scores_of(states, table, 1.0))
    sums = torch.zeros(5, ITEMS, dtype=torch.float64)
    draws = 4000
    for _ in range(draws):
        negatives = task.draw(FOLLOWING)
        weights = negatives.weights.double().exp()
        sums.index_add_(1, negatives.rows, weights.expand(5, -1) / draws)
    mean = (sums * torch.from_numpy(every)).sum(1).numpy()
    numpy.testing.assert_allclose(mean, every[:, list(there)].sum(1), rtol=0.1)


def test_in_batch_negatives_are_counted_while_training_alone():
    task = Retrieval(ITEMS, "in-batch")
    task.draw(FOLLOWING)
    task.eval().draw(FOLLOWING)
    assert task.seen.tolist() == [1, 1, 0, 0, 0, 3, 0]
    assert "seen" in task.state_dict()


@pytest.mark.parametrize("others", [[6], [6, 0, 6, 6, 2, 2, 2]])
def test_in_batch_negatives_are_counted_over_all_processes(monkeypatch, others):
    """By messages as long as the longest batch; none has the size of the table."""
    sent = [[len(others)], others]

    def all_gather(found, own):
        theirs = sent.pop(0)
        found[0].copy_(own)
        found[1].copy_(torch.tensor(theirs + [0] * (len(own) - len(theirs))))

    for name, found in (("is_initialized", True), ("get_world_size", 2)):
        monkeypatch.setattr(torch.distributed, name, lambda found=found: found)
    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    task = Retrieval(ITEMS, "in-batch")
    task.draw(FOLLOWING)
    every = torch.cat([FOLLOWING, torch.tensor(others)])
    assert task.seen.tolist() == every.bincount(minlength=ITEMS).tolist()


@pytest.mark.parametrize("kind", ["all", "uniform", "in-batch"])
def test_gradients_are_finite_where_no_negative_is_left(kind):
    states, table = torch.randn(3, DIM, requires_grad=True), torch.randn(1, DIM, requires_grad=True)
    following, task = torch.zeros(3, dtype=torch.long), Retrieval(1, kind, count=2)
    negatives = task.draw(following)
    loss = task.loss(states, following, table[following], negatives, table[negatives.rows])
    loss.backward()
    assert loss.item() == 0
    assert bool(states.grad.isfinite().all()) and bool(table.grad.isfinite().all())


def test_the_model_learns_of_every_item_after_a_moment_from_all_before_its_own():
    """A loss by hand, from states that see one item after the other."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(ITEMS, DIM)
    tower = Hstu(DIM, 1, layers=1, length=9, buckets=8)
    model = RetrievalModel(table, tower, Retrieval(ITEMS, "all", temperature=0.5)).double()
    items = [[3, 5, 5, 0], [6], [5, 1, 5], [2, 2], [4, 0, 1, 6]]
    times = [[1, 9, 10, 300], [4], [0, 0, 7], [8, 8], [1, 7, 7, 7]]
    losses = []
    for item, time in zip(items, times):
        for n in range(1, len(item)):
            known = sum(one < time[n] for one in time)
            if not known:
                continue
            before = Packed.of([item[:known]], [time[:known]], asked=[time[n]])
            scores = model.user_vectors(before) @ model.item_vectors().T / 0.5
            losses.append(torch.nn.functional.cross_entropy(scores, torch.tensor([item[n]])))
    torch.testing.assert_close(model.loss(Packed.of(items, times)), torch.stack(losses).mean())
    with pytest.raises(BadInput, match="no sequence of a batch has items of two moments"):
        model.loss(Packed.of([[1], [2, 4]], [[0], [3, 3]]))
    candidates = Packed.of(items, times, targets=[1, 0, 2, 1, 0])
    for use in (model.loss, model.user_vectors):
        with pytest.raises(UsageError, match="the batch has candidates"):
            use(candidates)


def test_other_negatives_are_refused():
    with pytest.raises(UsageError, match="'popular', expected one of all, in-batch, uniform"):
        Retrieval(ITEMS, "popular")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["all", "uniform", "in-batch"])
@pytest.mark.parametrize("make", [Hstu, SasRec])
def test_a_short_loop_learns_what_follows(make, kind):
    """Items go round: 0, 1, ..., 19, 0, ..."""
    torch.manual_seed(0)
    draw = numpy.random.default_rng(0)
    tower = make(16, heads=2, layers=1, length=12)
    table = torch.nn.Embedding(20, 16)
    model = RetrievalModel(table, tower, Retrieval(20, kind, count=64, temperature=0.2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        begun, lengths = draw.integers(0, 20, 16), draw.integers(2, 12, 16)
        packed = Packed.of([(a + numpy.arange(n)) % 20 for a, n in zip(begun, lengths)])
        optimizer.zero_grad()
        model(packed).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        packed = Packed.of([[4, 5, 6], [18, 19]])
        users, items = model.user_vectors(packed), model.item_vectors()
    places = ranks(users, items, torch.tensor([7, 0]))
    assert measured(places, at=(1,))["HR@1"] == 1
    assert torch.equal(items[[3]], model.item_vectors(torch.tensor([3])))
