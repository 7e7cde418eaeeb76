"""Towers compute the papers' formulas, one sequence at a time, whatever else is in the batch."""

import numpy
import pytest
import torch
from torch.nn import functional as F

from migrate.sequences import Hstu, Packed, Ranking, SasRec
from migrate.sequences.pairs import bucket
from migrate.sequences.tokens import Blocks
from semisync.common.errors import BadInput, UsageError
from tests.sequences import by_hand

DIM, HEADS, LENGTH = 6, 2, 41
LENGTHS = (3, 1, 19, 3, 41, 17, 18)


def hstu():
    return Hstu(DIM, HEADS, layers=2, length=LENGTH)


def hstu_with_times():
    return Hstu(DIM, HEADS, layers=2, length=LENGTH, buckets=20)


def sasrec():
    return SasRec(DIM, HEADS, layers=2, length=LENGTH, inner=10)


TOWERS = [(hstu, by_hand.hstu), (hstu_with_times, by_hand.hstu), (sasrec, by_hand.sasrec)]
every_tower = pytest.mark.parametrize(
    ("make", "reference"), TOWERS, ids=["hstu", "hstu-times", "sasrec"]
)


def drawn(make):
    """A tower in float64 of which every parameter matters."""
    torch.manual_seed(0)
    tower = make().double()
    for parameter in tower.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return tower


def packed_of(lengths, times=True, **more):
    draw = numpy.random.default_rng(0)
    columns = [numpy.sort(draw.integers(0, 10**6, length)) for length in lengths]
    items = [draw.integers(0, 9, length) for length in lengths]
    return Packed.of(items, columns if times else None, **more)


def vectors_of(packed):
    return torch.randn(
        len(packed.items), DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )


def each(packed):
    """Where each sequence stands."""
    return [slice(a, b) for a, b in zip(packed.offsets.tolist(), packed.offsets[1:].tolist())]


@every_tower
@pytest.mark.parametrize("kind", ["plain", "asked", "candidates"])
def test_a_tower_computes_its_papers_formula(make, reference, kind):
    tower = drawn(make)
    more = {
        "plain": {},
        "asked": {"asked": [10**6 + 10**number for number in range(len(LENGTHS))]},
        "candidates": {"targets": [1, 0, 4, 2, 7, 0, 1]},
    }[kind]
    packed = packed_of(LENGTHS, times=tower.buckets > 0, **more)
    vectors = vectors_of(packed)
    states = tower(vectors, packed).detach().numpy()
    for number, own in enumerate(each(packed)):
        times = packed.times[own].tolist() if tower.buckets else None
        asked = more["asked"][number] if kind == "asked" else None
        candidates = more["targets"][number] if kind == "candidates" else 0
        standing = by_hand.in_order(LENGTHS[number], times, asked, candidates)
        expected = reference(tower, vectors[own].numpy(), standing, times)
        numpy.testing.assert_allclose(states[own], expected, rtol=1e-10, atol=1e-12)


@every_tower
def test_of_items_and_actions_in_turn_none_sees_others_of_its_moment(make, reference):
    tower, asked = drawn(make), [10**7, 10**8, 10**9]
    times = [[1, 5, 5, 5, 900, 901, 901], [3, 3, 3], [2, 40, 70, 70]]
    packed = Packed.of(times, times, {"click": [[0] * len(one) for one in times]}, asked)
    tokens = Ranking(DIM, ["click"]).interleave(torch.zeros(14, DIM), packed).tokens
    vectors = torch.randn(28, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    states = tower.states(vectors, tokens).detach().numpy()
    for own, begun, time in zip(each(tokens), times, asked):
        standing, both = by_hand.in_turns(begun, time), [one for one in begun for _ in range(2)]
        expected = reference(tower, vectors[own].numpy(), standing, both if tower.buckets else None)
        numpy.testing.assert_allclose(states[own], expected, rtol=1e-10, atol=1e-12)


def test_a_new_tower_begins_with_the_states_of_the_authors_code():
    tower, vectors, packed = by_hand.as_the_authors_begin()
    states = F.normalize(tower.double()(vectors.double(), packed), dim=1)
    expected = by_hand.authors_hstu(tower, vectors.double(), packed.times)
    torch.testing.assert_close(states, expected, rtol=1e-10, atol=1e-12)


@every_tower
def test_what_else_is_in_a_batch_has_no_influence_on_states_and_gradients(make, reference):
    tower = drawn(make)
    packed = packed_of(LENGTHS)
    vectors = vectors_of(packed).requires_grad_()
    weights = torch.randn_like(vectors.detach())
    states = tower(vectors, packed)
    (states * weights).sum().backward()
    together = [parameter.grad.clone() for parameter in tower.parameters()]
    tower.zero_grad()
    for own in each(packed):
        alone = vectors.detach()[own].requires_grad_()
        single = Packed.of([packed.items[own]], [packed.times[own]])
        found = tower(alone, single)
        torch.testing.assert_close(found, states[own], rtol=1e-10, atol=1e-12)
        (found * weights[own]).sum().backward()
        torch.testing.assert_close(alone.grad, vectors.grad[own], rtol=1e-10, atol=1e-12)
    for parameter, expected in zip(tower.parameters(), together):
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-9, atol=1e-11)


@every_tower
def test_gradients_are_those_of_the_formula(make, reference):
    tower = drawn(make)
    packed = packed_of((3, 5, 2), targets=[1, 0, 1])
    vectors = vectors_of(packed).requires_grad_()
    names, parameters = zip(*tower.named_parameters())
    assert torch.autograd.gradcheck(
        lambda x, *some: torch.func.functional_call(tower, dict(zip(names, some)), (x, packed)),
        (vectors, *parameters),
        fast_mode=True,
    )


@every_tower
def test_a_later_item_changes_nothing_before_it(make, reference):
    tower = drawn(make)
    packed = packed_of((20,))
    vectors = vectors_of(packed).requires_grad_()
    tower(vectors, packed)[12].sum().backward()
    seen = vectors.grad.abs().sum(1) > 0
    assert seen.tolist() == [True] * 13 + [False] * 7


@every_tower
def test_candidates_see_what_was_before_and_not_each_other(make, reference):
    tower = drawn(make)
    packed = packed_of((9,), targets=[4])
    vectors = vectors_of(packed).requires_grad_()
    tower(vectors, packed)[7].sum().backward()
    seen = vectors.grad.abs().sum(1) > 0
    assert seen.tolist() == [True] * 5 + [False, False, True, False]


def test_times_are_asked_for_where_they_have_an_influence_and_else_have_none():
    packed, without = packed_of((4, 2)), packed_of((4, 2), times=False)
    vectors = vectors_of(packed)
    with pytest.raises(BadInput, match="the batch has no times"):
        drawn(hstu_with_times)(vectors, without)
    assert torch.equal(drawn(hstu)(vectors, packed), drawn(hstu)(vectors, without))


def test_ages_fall_into_buckets_that_grow_with_them():
    ages = torch.tensor([0, 1, 2, -3, 10, 1000, 10**9])
    assert bucket(ages, 32).tolist() == [0, 0, 2, 3, 7, 22, 31]


def test_sequences_stand_in_blocks_that_lengthen_none_by_an_eighth():
    lengths = torch.arange(1, 1000)
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    blocks = Blocks(offsets)
    rooms = torch.cat([torch.full((count,), length) for count, length in blocks.shapes])
    assert torch.equal(rooms[:16], lengths[:16])
    assert bool(((rooms >= lengths) & (rooms < lengths * 1.125)).all())
    assert len(blocks.shapes) < 66
    tokens = torch.arange(int(lengths.sum()))
    spread = blocks.spread(tokens)
    assert torch.equal(blocks.gather(spread), tokens)
    assert [tuple(block.shape) for block in blocks.split(spread)] == blocks.shapes


def test_what_does_not_fit_is_refused():
    tower = drawn(hstu)
    packed = packed_of((42,))
    with pytest.raises(BadInput, match="has 42 tokens, and the model's longest 41"):
        tower(vectors_of(packed), packed)
    with pytest.raises(UsageError, match="4 heads cannot share a dim of 6"):
        Hstu(6, 4, 1, 10)
    with pytest.raises(BadInput, match="2 times, expected 3"):
        Packed.of([[1, 2, 3]], [[1, 2]])
    with pytest.raises(BadInput, match="only candidates"):
        Packed.of([[1, 2]], targets=[2])
    with pytest.raises(BadInput, match="has no item"):
        Packed.of([[1, 2], []])
    with pytest.raises(BadInput, match="do not run from 0 to the 3 items"):
        Packed(torch.arange(3), torch.tensor([0, 2]))
