"""Histories in the text form of S3-Rec, and the item that is asked for in each.

A line is a user and the items in the order of time, as numbers from 1. Leave one out: the last item
of a user is the test, the one before it the validation; what lies before that trains.
"""

import os

import numpy as np
import torch

from migrate.sequences import Packed

VALIDATION, TEST = 2, 1  # how many of the last items are held back: the first of these is asked for
NAMES = ("Beauty", "Sports_and_Outdoors", "Toys_and_Games", "LastFM")

# R@5, N@5, R@10, N@10 as others print them, who do not all say what became of items had before.
PUBLISHED = {
    "Beauty": {
        "SASRec, printed by TIGER's authors": (0.0387, 0.0249, 0.0605, 0.0318),
        "HSTU, printed by ActionPiece's authors": (0.0469, 0.0314, 0.0704, 0.0389),
        "TIGER": (0.0454, 0.0321, 0.0648, 0.0384),
    },
    "Sports_and_Outdoors": {
        "SASRec, printed by TIGER's authors": (0.0233, 0.0154, 0.0350, 0.0192),
        "HSTU, printed by ActionPiece's authors": (0.0258, 0.0165, 0.0414, 0.0215),
        "TIGER": (0.0264, 0.0181, 0.0400, 0.0225),
    },
    "Toys_and_Games": {
        "SASRec, printed by TIGER's authors": (0.0463, 0.0306, 0.0675, 0.0374),
        "TIGER": (0.0521, 0.0371, 0.0712, 0.0432),
    },
}


class Histories:
    """The histories of a data set.

    Attributes:
        items: rows from 0, of all users one behind the other.
        begins, ends: where each user's items begin, and end.
        count: number of different items.
    """

    def __init__(self, folder, name):
        with open(os.path.join(folder, name + ".txt"), encoding="utf-8") as file:
            users = [np.array(line.split()[1:], np.int64) - 1 for line in file]
        lengths = [len(user) for user in users]
        self.items, self.ends = np.concatenate(users), np.cumsum(lengths)
        self.begins = self.ends - lengths
        self.count = int(self.items.max()) + 1

    def packed(self, users, held, length):
        """The last items, at most `length`, of each of the users before those held back."""
        ends = self.ends[users] - held
        begins = np.maximum(self.begins[users], ends - length)
        offsets = np.concatenate([[0], np.cumsum(ends - begins)])
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], ends - begins)
        return Packed(torch.from_numpy(self.items[places]), torch.from_numpy(offsets))

    def batches(self, held, length, tokens, draw=None):
        """(users, `packed` of them), of about `tokens` items each; drawn: in a random order."""
        users = np.arange(len(self.ends)) if draw is None else draw.permutation(len(self.ends))
        sizes = np.minimum(self.ends[users] - held - self.begins[users], length)
        batch = (np.cumsum(sizes) - 1) // tokens
        for own in np.split(users, np.flatnonzero(np.diff(batch)) + 1):
            yield own, self.packed(own, held, length)

    def asked(self, users, held):
        """The first item of each user that is held back."""
        return torch.from_numpy(self.items[self.ends[users] - held])
