"""The rows of `write_job` in memory, in batches of a process's share."""

import numpy as np
import torch

from migrate.training.distributed.processes import rank, ranks
from migrate.training.task import Batch


class Memory:
    """All epochs' global batches of `size` rows; the position is the number of those given."""

    def __init__(self, data, size=64, epochs=1):
        self._data, self._size = data, size
        self._starts = np.cumsum(data["lengths"]) - data["lengths"]
        self._given, self._all = 0, epochs * (len(data["key"]) // size)

    def __iter__(self):
        while self._given < self._all:
            first = self._given * self._size % (len(self._data["key"]) // self._size * self._size)
            share = self._size // ranks()
            first += rank() * share
            self._given += 1
            yield self.batch(slice(first, first + share))

    def batch(self, chosen):
        """Some rows, as the converted graph takes them."""
        data = self._data
        lengths = data["lengths"][chosen]
        begin = int(self._starts[chosen.start])
        segments = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(segments)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        inputs = {
            "user": list(data["user"][chosen]),
            "tags": (
                torch.from_numpy(np.stack([segments, places], 1)),
                torch.from_numpy(data["tags"][begin : begin + len(segments)]),
                torch.tensor([len(lengths), int(lengths.max())]),
            ),
            **{name: torch.from_numpy(data[name][chosen]) for name in ("item", "price", "clicked")},
        }
        return Batch(inputs, inputs["clicked"], data["day"][chosen])

    def state_dict(self):
        return {"given": self._given}

    def load_state_dict(self, state):
        self._given = state["given"]
