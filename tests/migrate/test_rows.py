"""Rows come out in the order of the ids, whatever the partitions and however many are asked for."""

import numpy as np
import pytest

from migrate.checkpoint.pieces import Piece
from migrate.checkpoint.rows import RowReader, skipped
from semisync.encoding.dtypes import BFLOAT16

TABLE = np.arange(53 * 6).reshape(53, 6)


class Values:
    """A stream over an array."""

    def __init__(self, values):
        self.values, self.position = values.reshape(-1), 0

    def fill(self, target):
        end = self.position + target.size
        target[...] = self.values[self.position : end].reshape(target.shape)
        self.position = end


def stored(partitions, columns, dealt):
    """The pieces of TABLE, their values and the partitions' (first row, rows)."""
    whole = [TABLE[part::partitions] for part in range(partitions)]
    if not dealt:
        whole = np.array_split(TABLE, partitions)
    pieces, values, blocks, start = [], [], [], 0
    for rows in whole:
        for left in range(0, 6, 6 // columns):
            box = rows[:, left : left + 6 // columns]
            pieces.append(Piece((start, left), box.shape, 0, 0, box.nbytes, 0))
            values.append(box)
        blocks.append((start, len(rows)))
        start += len(rows)
    return pieces, values, blocks if dealt else []


@pytest.mark.parametrize("dealt", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("partitions", [1, 2, 7, 53])
def test_any_range_is_read_in_order(partitions, columns, dealt):
    pieces, values, blocks = stored(partitions, columns, dealt)
    for first in (0, 1, 6, 7, 30, 52):
        for step in (1, 3, 7, 20, 53):
            streams = [
                Values(of_piece[skipped(piece, first, blocks) :])
                for piece, of_piece in zip(pieces, values)
            ]
            reader = RowReader(pieces, streams, first, blocks)
            for start in range(first, 53, step):
                out = np.zeros_like(TABLE[start : start + step])
                reader.fill(out)
                assert np.array_equal(out, TABLE[start : start + step])


@pytest.mark.parametrize("dtype", [np.uint8, BFLOAT16, object])
def test_values_of_every_type_are_dealt_out(dtype):
    table = TABLE.astype(np.uint16).view(BFLOAT16) if dtype is BFLOAT16 else TABLE.astype(dtype)
    pieces, _, blocks = stored(7, 1, True)
    reader = RowReader(pieces, [Values(table[part::7]) for part in range(7)], 0, blocks)
    for start in (0, 30, 44):  # fewer turns each time
        out = np.zeros_like(table[start : {0: 30, 30: 44}.get(start)])
        reader.fill(out)
        assert np.array_equal(out, table[start : start + len(out)])
