"""HSTU's kernels compute what the tower in blocks computes, forwards and backwards.

`test_kernels` has Triton interpret them in a process of their own. On a GPU:

    python -m pytest tests/sequences/kernels.py
"""

import numpy
import pytest
import torch
from torch.nn import functional as F

from migrate.sequences import Hstu, Packed, hstu
from semisync.common.errors import BadInput
from tests.sequences import by_hand

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def packed_of(lengths, **more):
    draw = numpy.random.default_rng(0)
    times = [numpy.sort(draw.integers(0, 10**7, length)) for length in lengths]
    return Packed.of([numpy.arange(length) for length in lengths], times, **more).to(DEVICE)


def states_and_gradients(tower, packed, kernels, monkeypatch):
    monkeypatch.setattr(hstu, "has_kernels", lambda vectors: kernels)
    torch.manual_seed(1)
    vectors = torch.randn(len(packed.items), tower.dim).to(DEVICE).requires_grad_()
    counts = torch.randn(len(packed.items), tower.dim).to(DEVICE)
    tower.zero_grad()
    states = tower(vectors, packed)
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
    torch.manual_seed(0)
    tower = Hstu(dim, heads, layers=1, length=70, buckets=buckets).to(DEVICE)
    for parameter in tower.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    packed = packed_of(lengths, targets=targets, asked=[2 * 10**7] * len(lengths))
    expected = states_and_gradients(tower, packed, False, monkeypatch)
    found = states_and_gradients(tower, packed, True, monkeypatch)
    for one, other in zip(found, expected):
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max())


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
