"""A target's rank is its place among all items, the worst one where scores are equal."""

import math

import pytest
import torch

from migrate.sequences import Packed, measured, ranks
from semisync.common.errors import BadInput


def by_hand(users, items, targets, seen=None):
    found = []
    for number, (user, target) in enumerate(zip(users.tolist(), targets.tolist())):
        scores = [sum(a * b for a, b in zip(user, item)) for item in items.tolist()]
        left_out = set() if seen is None else set(seen[number]) - {target}
        others = [n for n in range(len(scores)) if n not in left_out and n != target]
        found.append(1 + sum(scores[n] >= scores[target] for n in others))
    return found


def drawn():
    """Small whole numbers, so that many scores are equal and all are exact."""
    torch.manual_seed(0)
    users, items = torch.randint(-2, 3, (40, 3)).float(), torch.randint(-2, 3, (30, 3)).float()
    seen = [torch.randint(30, (1 + n % 9,)).tolist() for n in range(40)]
    return users, items, torch.randint(30, (40,)), seen


@pytest.mark.parametrize("scores", [1, 100, 10**6])
def test_ranks_are_those_by_hand_in_blocks_of_any_size(scores):
    users, items, targets, seen = drawn()
    assert ranks(users, items, targets, scores=scores).tolist() == by_hand(users, items, targets)
    packed = Packed.of(seen)
    found = ranks(users, items, targets, (packed.items, packed.offsets), scores)
    assert found.tolist() == by_hand(users, items, targets, seen)


def test_a_model_that_scores_all_alike_ranks_every_target_last():
    users, items = torch.ones(2, 3), torch.zeros(50, 3)
    assert ranks(users, items, torch.tensor([0, 49])).tolist() == [50, 50]


def test_a_target_that_was_seen_stays_in():
    users, items = torch.ones(1, 1), torch.tensor([[3.0], [2.0], [1.0]])
    had = (torch.tensor([0, 1]), torch.tensor([0, 2]))
    assert ranks(users, items, torch.tensor([1]), had).tolist() == [1]


def test_what_is_measured_of_ranks():
    found = measured(torch.tensor([1, 3, 6, 200]), at=(5, 10))
    assert found == pytest.approx(
        {
            "HR@5": 2 / 4,
            "NDCG@5": (1 + 1 / 2) / 4,
            "HR@10": 3 / 4,
            "NDCG@10": (1 + 1 / 2 + 1 / math.log2(7)) / 4,
            "MRR": (1 + 1 / 3 + 1 / 6 + 1 / 200) / 4,
        }
    )


def test_scores_that_are_not_finite_are_refused():
    users = torch.tensor([[math.nan]])
    with pytest.raises(BadInput, match="a score is not finite"):
        ranks(users, torch.ones(3, 1), torch.tensor([0]))
    with pytest.raises(BadInput, match="no rank"):
        measured(torch.empty(0, dtype=torch.int64))
