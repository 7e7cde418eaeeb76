"""A budget for the memory and time that a stranger's file may ask for."""

from semisync.common.errors import BadInput


class Budget:
    """One amount per file: each part is charged before it is made.

    A limit for each thing alone would let a file ask for thousands of them.

    Args:
        most: of all together.
        sentence: of the error.
    """

    def __init__(self, most, sentence):
        self._left, self._sentence = most, sentence

    def take(self, amount):
        """Raises BadInput once more was taken than there is."""
        self._left -= amount
        if self._left < 0:
            raise BadInput(self._sentence)

    def has(self, amount):
        """Whether so much is left; it is taken then."""
        enough = amount <= self._left
        self._left -= amount if enough else 0
        return enough
