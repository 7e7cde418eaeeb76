"""Items per second of a step of training, packed and padded, and of the way into blocks and back
alone, by ours and by fbgemm's jagged ops, on the lengths of a data set."""

import importlib
import statistics

import numpy as np
import torch

from benchmarks.harness.turns import turns
from benchmarks.sequences_parts.data import VALIDATION
from benchmarks.sequences_parts.ours import TOWERS
from benchmarks.tables import timed
from migrate.sequences import Packed

WAYS = ("packed", "padded to the batch's longest", "padded to the model's longest")


def lengthened(packed, longest):
    """The sequences padded at their ends to one length, and the places of their own items."""
    sequences = len(packed.lengths)
    offsets = torch.arange(sequences + 1) * longest
    places = packed.places() + offsets[:-1].repeat_interleave(packed.lengths)
    items = torch.zeros(sequences * longest, dtype=torch.int64)
    items[places] = packed.items
    return Packed(items, offsets), places


def _chosen(histories, setting, batches):
    draw = np.random.default_rng(0)
    drawn = histories.batches(VALIDATION, setting.length, setting.tokens, draw)
    return [packed for _, (_, packed) in zip(range(batches), drawn)]


def _medians(steps, repeats, *batches):
    """{name: median CPU seconds of a step for each of the batches}, in turns."""

    def all_of(step):
        return lambda: timed(lambda: [step(*batch) for batch in zip(*batches)])[1]

    found = turns({name: all_of(step) for name, step in steps.items()}, repeats, uncounted=1)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def moved(histories, setting, batches, repeats):
    """Seconds of a batch's way there and back, and its gradients', with a layer's four vectors of
    an item: (into our blocks, padded by fbgemm's jagged ops). The median of repeats in turns."""
    importlib.import_module("fbgemm_gpu")
    chosen = _chosen(histories, setting, batches)
    every = [torch.randn(len(one.items), 4 * setting.dim, requires_grad=True) for one in chosen]

    def there_and_back(way):
        return lambda packed, vectors: way(packed, vectors).sum().backward()

    steps = {way: there_and_back(way) for way in (_in_blocks, _by_fbgemm)}
    return [taken / batches for taken in _medians(steps, repeats, chosen, every).values()]


def _in_blocks(packed, vectors):
    return packed.tokens.blocks.gather(packed.tokens.blocks.spread(vectors))


def _by_fbgemm(packed, vectors):
    ops, longest = torch.ops.fbgemm, int(packed.lengths.max())
    padded = ops.jagged_to_padded_dense(vectors, [packed.offsets], [longest], 0.0)
    return ops.dense_to_jagged(padded, [packed.offsets], len(vectors))[0]


def speeds(histories, tower, setting, batches, repeats):
    """Items per second of forward and backward, without padding, by way; medians of the repeats."""
    torch.manual_seed(0)
    made = TOWERS[tower](
        setting.dim, setting.heads, setting.layers, setting.length, dropout=setting.dropout
    )
    chosen = _chosen(histories, setting, batches)
    items = sum(len(packed.items) for packed in chosen)
    table = torch.nn.Embedding(histories.count, setting.dim)

    def step(way):
        return lambda packed: _step(made, table, packed, way, setting.length)

    taken = _medians({way: step(way) for way in WAYS}, repeats, chosen)
    return {way: items / seconds for way, seconds in taken.items()}


def _step(tower, table, packed, way, length):
    packed = Packed(packed.items, packed.offsets)  # which has no blocks yet
    places = slice(None)
    if way != WAYS[0]:
        longest = length if way == WAYS[2] else int(packed.lengths.max())
        packed, places = lengthened(packed, longest)
    tower.zero_grad()
    table.zero_grad()
    tower(table(packed.items), packed)[places].square().mean().backward()
