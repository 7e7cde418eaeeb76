"""Items per second of a step of training, packed and padded, on the lengths of a data set."""

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


def speeds(histories, tower, setting, batches, repeats):
    """Items a second by way: the tower's steps forward and back, of what is no padding. The ways
    take turns; the median of the repeats."""
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
