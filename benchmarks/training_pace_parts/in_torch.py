"""The DeepFM of benchmarks.training_pace in torch: python in_torch.py PREFIX THREADS.

A plain loop over `build_training` of the checkpoint at PREFIX.
"""

import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))

import torch
from job import answer

import migrate


def main():
    prefix, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    training = migrate.build_training(prefix)

    def take(batch):
        training.optimizer.zero_grad()
        training.module(batch).backward()
        training.optimizer.step()

    answer(lambda batch: {name: torch.tensor(one) for name, one in batch.items()}, take)


main()
