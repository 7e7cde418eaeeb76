"""A model of benchmarks.training_pace in torch: in_torch MODEL PREFIX THREADS.

A plain loop over `build_training` of the checkpoint at PREFIX, over batches in memory.
"""

import sys

import torch

import migrate
from benchmarks.training_pace_parts.job import answer


def main():
    model, prefix, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(threads)
    training = migrate.build_training(prefix)

    def ready(batches):
        given = [{name: _tensor(one) for name, one in batch.items()} for batch in batches]

        def take(number):
            training.optimizer.zero_grad()
            training.module(given[number]).sum().backward()
            training.optimizer.step()

        return take

    answer(model, ready)


def _tensor(array):
    return array if array.dtype == object else torch.from_numpy(array)


main()
