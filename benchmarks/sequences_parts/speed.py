"""Items per second of a step of training, packed and padded, and of the way into blocks and back
alone, by ours and by fbgemm's jagged ops, on the lengths of a data set."""

import importlib
import statistics
import time

import numpy as np
import torch

from benchmarks.sequences_parts.data import VALIDATION
from benchmarks.sequences_parts.ours import TOWERS
from migrate.sequences import Packed

WAYS = ("packed", "padded to the batch's longest", "padded to the model's longest")


def lengthened(packed, longest):
    """The same sequences, each with items at its end up to one length; and where its own stand."""
    sequences = len(packed.lengths)
    offsets = torch.arange(sequences + 1) * longest
    places = packed.places() + offsets[:-1].repeat_interleave(packed.lengths)
    items = torch.zeros(sequences * longest, dtype=torch.int64)
    items[places] = packed.items
    return Packed(items, offsets), places


def moved(histories, setting, batches, repeats):
    """Seconds of a batch's way there and back, and its gradients', with a layer's four vectors of
    an item: (into our blocks, padded by fbgemm's jagged ops). The median of repeats in turns."""
    importlib.import_module("fbgemm_gpu")
    draw = np.random.default_rng(0)
    drawn = histories.batches(VALIDATION, setting.length, setting.tokens, draw)
    chosen = [packed for _, (_, packed) in zip(range(batches), drawn)]
    every = [torch.randn(len(one.items), 4 * setting.dim, requires_grad=True) for one in chosen]
    seconds = {_in_blocks: [], _by_fbgemm: []}
    for turn in range(repeats + 1):
        for way, taken in seconds.items():
            begun = time.process_time()
            for packed, vectors in zip(chosen, every):
                way(packed, vectors).sum().backward()
            if turn:
                taken.append((time.process_time() - begun) / batches)
    return [statistics.median(taken) for taken in seconds.values()]


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
    draw = np.random.default_rng(0)
    drawn = histories.batches(VALIDATION, setting.length, setting.tokens, draw)
    chosen = [packed for _, (_, packed) in zip(range(batches), drawn)]
    items = sum(len(packed.items) for packed in chosen)
    table = torch.nn.Embedding(histories.count, setting.dim)
    seconds = {way: [] for way in WAYS}
    for turn in range(repeats + 1):
        for way in WAYS:
            begun = time.process_time()
            for packed in chosen:
                _step(made, table, packed, way, setting.length)
            if turn:
                seconds[way].append(time.process_time() - begun)
    return {way: items / statistics.median(taken) for way, taken in seconds.items()}


def _step(tower, table, packed, way, length):
    packed = Packed(packed.items, packed.offsets)  # which has no blocks yet
    places = slice(None)
    if way != WAYS[0]:
        longest = length if way == WAYS[2] else int(packed.lengths.max())
        packed, places = lengthened(packed, longest)
    tower.zero_grad()
    table.zero_grad()
    tower(table(packed.items), packed)[places].square().mean().backward()
