"""Batches hold about equally many events, and shares of a batch too."""

import numpy as np

from migrate.sequences.batches import plan, shares

LENGTHS = np.random.default_rng(0).geometric(0.1, 1000).clip(max=50)


def test_each_sequence_comes_once_an_epoch_in_batches_of_about_one_size():
    batches = plan(LENGTHS, 400, seed=1, epoch=2)
    assert sorted(np.concatenate(batches)) == list(range(1000))
    sizes = [LENGTHS[batch].sum() for batch in batches]
    assert all(350 <= size <= 450 for size in sizes[:-1])
    again = plan(LENGTHS, 400, seed=1, epoch=2)
    assert all(map(np.array_equal, batches, again))
    assert not np.array_equal(batches[0], plan(LENGTHS, 400, seed=1, epoch=3)[0])


def test_shares_of_a_batch_differ_by_no_more_than_one_sequence():
    batch = plan(LENGTHS, 400, seed=1)[0]
    parts = shares(batch, LENGTHS, 3)
    assert sorted(np.concatenate(parts)) == sorted(batch)
    sizes = [LENGTHS[part].sum() for part in parts]
    assert max(sizes) - min(sizes) <= LENGTHS[batch].min()
    assert [len(part) for part in shares(batch[:2], LENGTHS, 3)] == [1, 1, 0]
