"""Labels are predicted from what came before an item, and each counts by itself."""

import numpy
import pytest
import torch

from migrate.sequences import Hstu, Packed, Ranking, RankingModel, SasRec
from semisync.common.errors import BadInput, UsageError

DIM = 8
ITEMS = [[3, 1, 2, 2], [4], [0, 5, 1]]
CLICKS = [[1, 0, 1, 1], [0], [0, 1, 1]]
BUYS = [[0, 0, 1, 0], [0], [0, 0, 1]]
TIMES = [[1, 5, 5, 900], [3], [2, 4, 80]]


def batch(clicks=None, targets=None):
    labels = {"click": CLICKS if clicks is None else clicks, "buy": BUYS}
    return Packed.of(ITEMS, TIMES, labels, targets=targets)


def model_of(make=Hstu, **more):
    torch.manual_seed(0)
    table, task = torch.nn.Embedding(6, DIM), Ranking(DIM, ["click", "buy"])
    model = RankingModel(table, make(DIM, 2, 2, 20, **more), task).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_items_and_actions_take_turns_and_candidates_have_no_action():
    model, packed = model_of(), batch(targets=[1, 0, 1])
    vectors = model.table(packed.items)
    mixed = model.task.interleave(vectors, packed)
    tokens = mixed.tokens
    assert tokens.offsets.tolist() == [0, 7, 9, 14]
    assert mixed.items.tolist() == [0, 2, 4, 6, 7, 9, 11, 13]
    assert tokens.times.tolist() == [1, 1, 5, 5, 5, 5, 900, 3, 3, 2, 2, 4, 4, 80]
    assert tokens.asked.tolist() == [1, 5, 5, 900, 5, 900, 900, 3, 3, 2, 4, 4, 80, 80]
    assert tokens.places.tolist() == [0, 1, 2, 3, 2, 3, 4, 0, 1, 0, 1, 2, 3, 4]
    assert tokens.sees.known.tolist() == [0, 0, 2, 2, 2, 2, 6, 0, 0, 0, 0, 2, 2, 4]
    assert tokens.sees.event.tolist() == [0, 0, 2, 2, 4, 4, 6, 0, 0, 0, 0, 2, 2, 4]
    assert torch.equal(mixed.vectors[mixed.items], vectors)
    click_no, click_yes, buy_no, _ = model.task.actions.weight
    torch.testing.assert_close(mixed.vectors[1], click_yes + buy_no)
    torch.testing.assert_close(mixed.vectors[3], click_no + buy_no)


@pytest.mark.parametrize("targets", [None, [1, 0, 0]])
def test_an_items_logits_do_not_see_its_own_labels_and_see_those_before(targets):
    model = model_of()
    changed = [[1, 0, 0, 1], *CLICKS[1:]]
    before, after = model.logits(batch(targets=targets)), model.logits(batch(changed, targets))
    for name in ("click", "buy"):
        same = (before[name] == after[name]).tolist()
        assert same == [True, True, True, False, True, True, True, True]


@pytest.mark.parametrize("make", [Hstu, SasRec])
def test_items_of_one_moment_have_the_logits_of_each_alone_in_any_order(make):
    model = model_of(make, **({"buckets": 16} if make is Hstu else {}))
    items, times = torch.tensor([3, 1, 2, 0, 5, 4, 1]), torch.tensor([1, 5, 5, 5, 900, 900, 901])
    clicks, buys = torch.tensor([1, 0, 1, 1, 0, 1, 0]), torch.tensor([0, 0, 1, 0, 0, 1, 1])
    order = torch.tensor([0, 3, 1, 2, 5, 4, 6])

    def logits(at, **more):
        labels = {"click": [clicks[at]], "buy": [buys[at]]}
        return model.logits(Packed.of([items[at]], [times[at]], labels, **more))["click"]

    found = logits(torch.arange(7))
    torch.testing.assert_close(logits(order), found[order])
    for at in range(1, 7):
        before = (times < times[at]).nonzero().squeeze(1)
        alone = logits(torch.cat([before, torch.tensor([at])]), targets=[1])
        torch.testing.assert_close(alone[-1], found[at])


def test_candidates_logits_are_those_of_each_alone():
    model, times = model_of(buckets=16), [[1, 700, 700, 700], *TIMES[1:]]
    labels = {"click": CLICKS, "buy": BUYS}
    among = model.logits(Packed.of(ITEMS, times, labels, targets=[3, 0, 2]))["buy"]
    for place in (1, 2, 3):
        alone = Packed.of(
            [[ITEMS[0][0], ITEMS[0][place]]],
            [[1, 700]],
            {name: [[column[0][0], column[0][place]]] for name, column in labels.items()},
            targets=[1],
        )
        torch.testing.assert_close(model.logits(alone)["buy"][1], among[place])


@pytest.mark.parametrize("make", [Hstu, SasRec])
def test_the_loss_is_the_sum_over_labels_of_the_mean_log_loss(make):
    model, packed = model_of(make), batch()
    logits = model.logits(packed)
    expected = 0.0
    for name in ("click", "buy"):
        label, logit = packed.labels[name].numpy(), logits[name].detach().numpy()
        expected += numpy.logaddexp(0, numpy.where(label == 1, -logit, logit)).mean()
    assert float(model(packed).detach()) == pytest.approx(expected)
    assert list(model.losses(packed)) == ["click", "buy"]


def test_labels_that_are_missing_or_no_labels_are_refused():
    model = model_of()
    with pytest.raises(BadInput, match="no labels 'click'"):
        model.loss(Packed.of(ITEMS, TIMES, {"buy": BUYS}))
    with pytest.raises(BadInput, match="neither 0 nor 1"):
        model.loss(batch([[2, 0, 1, 1], [0], [0, 1, 1]]))
    with pytest.raises(UsageError, match="no label"):
        Ranking(DIM, [])
