"""Choices that a number makes, and the feeds of what they lead to."""

import collections
import random

import numpy as np

ROWS = 12


class Draw:
    """The choices of one job.

    Attributes:
        said: what was chosen, in words.
        points: {tensor to feed: function of a numpy.random.RandomState and the rows}.
    """

    def __init__(self, number):
        self._random = random.Random(number)
        self._names = collections.Counter()
        self.said = []
        self.points = {}

    def one(self, what, *options):
        """One of the options."""
        choice = self._random.choice(options)
        self.said.append("{} {}".format(what, choice))
        return choice

    def may(self, what):
        """Whether this job has it."""
        chosen = self._random.random() < 0.5
        if chosen:
            self.said.append(what)
        return chosen

    def name(self, word):
        """`word` with a number that makes it a name of its own."""
        self._names[word] += 1
        return "{}_{}".format(word, self._names[word])

    def feeds(self, seed, **fixed):
        """What a batch is fed: {name of a tensor: array}."""
        state = np.random.RandomState(seed)
        found = {}
        for make in self.points.values():
            found.update(make(state))
        return {**found, **fixed}
