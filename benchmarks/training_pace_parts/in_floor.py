"""The time of torch's own calls in the DeepFM's step: in_floor THREADS.

Its 52 look-ups as `torch.nn.Embedding` with sparse gradients, forward and backward, and nothing
else: no layers, no update, no code of this project.
"""

import sys

import torch

from benchmarks.training_pace_parts.job import COLUMNS, TABLE_ROWS, answer


def main():
    torch.set_num_threads(int(sys.argv[1]))
    tables = [
        torch.nn.Embedding(TABLE_ROWS, width, sparse=True) for width in (16, 1) for _ in COLUMNS
    ]

    def ready(batches):
        given = [[torch.from_numpy(batch[name]) for name in COLUMNS] * 2 for batch in batches]

        def take(number):
            for table in tables:
                table.weight.grad = None
            rows = [table(ids) for table, ids in zip(tables, given[number])]
            torch.cat(rows, 1).sum().backward()

        return take

    answer("deepfm", ready)


main()
