"""What new ids begin with."""

import numpy as np
import pytest
import torch
from scipy import stats

from migrate.id_tables import Constant, IdEmbeddings, IdTable, Normal, TruncatedNormal, Uniform
from migrate.torchrec.optimizers import GradientDescent

IDS = np.arange(-20_000, 20_000) * 1_000_003
DRAWN = {
    "uniform": (Uniform(-0.2, 0.6), stats.uniform(-0.2, 0.8)),
    "normal": (Normal(1.0, 0.5), stats.norm(1.0, 0.5)),
    "truncated": (TruncatedNormal(1.0, 0.5), stats.truncnorm(-2, 2, 1.0, 0.5)),
}


@pytest.mark.parametrize("initializer, law", DRAWN.values(), ids=DRAWN)
def test_values_are_drawn_from_the_distribution_and_do_not_hang_together(initializer, law):
    drawn = initializer(IDS, 4, 3).numpy()
    assert stats.kstest(drawn.reshape(-1), law.cdf).pvalue > 0.001
    together = np.column_stack([drawn, np.roll(drawn, 1, axis=0)])  # of the ids beside, too
    correlation = np.corrcoef(together, rowvar=False) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(IDS))


@pytest.mark.parametrize("initializer", [one for one, _ in DRAWN.values()], ids=list(DRAWN))
def test_a_vector_depends_on_the_seed_and_the_id_alone(initializer):
    drawn = initializer(IDS, 4, 3)
    order = np.random.default_rng(0).permutation(len(IDS))[:1000]
    assert torch.equal(initializer(IDS[order], 4, 3), drawn[torch.from_numpy(order)])
    assert (initializer(IDS[order], 4, 4) == drawn[torch.from_numpy(order)]).float().mean() < 0.01


def test_tables_differ_from_each_other_and_by_the_seed():
    def first(seed):
        tables = [IdTable(name, 4, [name], pooling=None, initializer=Normal()) for name in "ab"]
        embeddings = IdEmbeddings(tables, seed)
        embeddings.optimizer(GradientDescent, lr=1.0)
        return embeddings(dict.fromkeys("ab", torch.tensor([12])))

    one, same, other = first(1), first(torch.Generator().manual_seed(1)), first(2)
    assert torch.equal(one["a"], same["a"])
    assert not torch.equal(one["a"], one["b"]) and not torch.equal(one["a"], other["a"])


def test_a_constant_is_everywhere():
    assert torch.equal(Constant(2.5)(IDS[:3], 2, 0), torch.full((3, 2), 2.5))
