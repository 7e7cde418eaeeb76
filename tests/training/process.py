"""One process of a training on `Memory`, alone or under torchrun:

python -m tests.training.process JOB OUT [--steps N] [--every N] [--resume] [--still] [--rows N]

With --rows it trains on JOB/N.parquet, 66 rows at a time.

It writes its number to OUT/pid.RANK, and OUT/begun.RANK once it asks for its first batch. --still
is without dropout, whose random numbers are each process's own.
"""

import argparse
import os
import pathlib

import numpy as np
import torch

import migrate
from migrate.training.converted_task import open_converted
from migrate.training.distributed.processes import joined, rank, ranks
from migrate.training.reading import open_columns, reading_of
from migrate.training.trainer import Settings, train
from tests.training.memory import Memory


class Watched(Memory):
    """Writes a file when the first batch is asked for."""

    def __iter__(self):
        self.begun.touch()
        yield from super().__iter__()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--still", action="store_true")
    parser.add_argument("--rows", type=int)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.still:
        torch.nn.functional.dropout = lambda x, *_: x
    with joined(deadline=60):
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"pid.{rank()}").write_text(str(os.getpid()))
        torch.manual_seed(rank())
        converted = open_converted(migrate.open_checkpoint(args.job / "clicks.ckpt"))
        task = converted.task
        if ranks() > 1:
            from migrate.training.distributed.sharding import distribute

            task = distribute(task)
        if args.rows is None:
            data = Watched(np.load(args.job / "clicks.npz"), epochs=30)
            data.begun = args.out / f"begun.{rank()}"
        else:
            reading = reading_of(converted.inputs, {}, {}, "clicked", "day")
            path = str(args.job / f"{args.rows}.parquet")
            data = open_columns([path], reading, 66 // ranks(), 2)
        train(task, data, str(args.out), Settings(args.steps, args.every, 10), args.resume)


if __name__ == "__main__":
    main()
