"""HSTU's kernels compute what the tower in blocks computes, forwards and backwards.

`test_kernels` has Triton interpret them in a process of their own. On a GPU:

    python -m pytest tests/sequences/kernels.py
"""

import numpy
import pytest
import torch
from torch.nn import functional as F

from migrate.sequences import Hstu, Packed, Ranking, hstu
from semisync.common.errors import BadInput
from tests.sequences import by_hand

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def packed_of(lengths, **more):
    draw = numpy.random.default_rng(0)
    times = [numpy.sort(draw.integers(0, 10**7, length)) for length in lengths]
    return Packed.of([numpy.arange(length) for length in lengths], times, **more).to(DEVICE)


def states_and_gradients(tower, tokens, kernels, monkeypatch):
    monkeypatch.setattr(hstu, "has_kernels", lambda vectors: kernels)
    torch.manual_seed(1)
    vectors = torch.randn(len(tokens.places), tower.dim).to(DEVICE).requires_grad_()
    counts = torch.randn(len(tokens.places), tower.dim).to(DEVICE)
    tower.zero_grad()
    states = tower.states(vectors, tokens)
    (states * counts).sum().backward()
    return [states.detach(), vectors.grad, *(one.grad for one in tower.parameters())]


@pytest.mark.parametrize(
    ("lengths", "dim", "heads", "buckets", "targets"),
    [
        ((5, 1, 33, 64), 24, 2, 0, None),  # of a head 12 numbers; whole blocks, and one more
        ((2, 31, 70), 16, 1, 60, None),  # ages in all of their buckets
        ((3, 40, 66), 32, 2, 24, [2, 1, 35]),
        ((4, 37), 32, 2, 0, [1, 33]),
    ],
)
def test_the_kernels_give_the_states_and_gradients_of_the_blocks(
    lengths, dim, heads, buckets, targets, monkeypatch
):
    packed = packed_of(lengths, targets=targets, asked=[2 * 10**7] * len(lengths))
    check_kernels(packed.tokens, dim, heads, buckets, monkeypatch)


def check_kernels(tokens, dim, heads, buckets, monkeypatch):
    torch.manual_seed(0)
    tower = Hstu(dim, heads, layers=1, length=tokens.longest, buckets=buckets).to(DEVICE)
    for parameter in tower.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    expected = states_and_gradients(tower, tokens, False, monkeypatch)
    found = states_and_gradients(tower, tokens, True, monkeypatch)
    for one, other in zip(found, expected):
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max())


@pytest.mark.parametrize(
    "sizes",
    [
        ([1, 3, 1, 5, 1, 1, 20, 1, 2, 1], [2, 1]),
        ([37, 1], [1] * 15 + [2, 1]),  # a moment beyond a block; blocks that begin within an event
    ],
)
def test_the_kernels_see_nothing_of_others_of_one_moment(sizes, monkeypatch):
    times = [numpy.repeat(numpy.arange(len(own)) * 1000, own) for own in sizes]
    labels = {"click": [time % 2 for time in times]}
    packed = Packed.of(times, times, labels, targets=[0, 1]).to(DEVICE)
    task = Ranking(16, ["click"]).to(DEVICE)
    tokens = task.interleave(torch.zeros(len(packed.items), 16, device=DEVICE), packed).tokens
    assert tokens.sees is not None
    check_kernels(tokens, 16, 2, 24, monkeypatch)


def test_with_the_kernels_a_new_tower_begins_with_the_states_of_the_authors_code(monkeypatch):
    monkeypatch.setattr(hstu, "has_kernels", lambda vectors: True)
    tower, vectors, packed = by_hand.as_the_authors_begin()
    tower, vectors, packed = tower.to(DEVICE), vectors.to(DEVICE), packed.to(DEVICE)
    states = F.normalize(tower(vectors, packed), dim=1)
    expected = by_hand.authors_hstu(tower, vectors, packed.times)
    assert float((states - expected).abs().max()) <= 1e-5


def test_a_batch_without_times_is_refused_by_the_kernels_too(monkeypatch):
    monkeypatch.setattr(hstu, "has_kernels", lambda vectors: True)
    tower = Hstu(16, heads=1, layers=1, length=8, buckets=4).to(DEVICE)
    with pytest.raises(BadInput, match="bias by time"):
        tower(torch.randn(2, 16, device=DEVICE), Packed.of([[1, 2]]).to(DEVICE))


def test_the_cpu_and_float64_have_no_kernels():
    assert not hstu.has_kernels(torch.zeros(1))
    assert not hstu.has_kernels(torch.zeros(1, dtype=torch.float64, device=DEVICE))
